package run

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// serverPatience limits how long the server may take to accept a stop request, and then how
	// long the run may be stuck. After this time, the supervisor stops the processes without the
	// server.
	serverPatience = 5 * time.Second
	// killAnswer limits the wait for the run to confirm that it kills its processes, and for the
	// server to terminate a run after a failed start.
	killAnswer = 2 * time.Second
	// cutBound limits how long the run may take to end after its supervisor was asked to kill
	// all processes. Killing them takes the supervisor two seconds.
	cutBound = 4 * time.Second
	// lastMoment limits how long the run may take to end after its supervisor has exited, which
	// also waits for the run.
	lastMoment = time.Second
)

// signal acts on a signal to this command. It returns the number of signals so far, or 0 if the
// signal does not count.
func (l *localRun) signal(ctx context.Context, s os.Signal) int {
	n := l.interrupted.Add(s)
	switch {
	case l.agents.mayLeave(l.spec):
		l.leaveRun(s, n)
	case n == 1:
		if !l.owner.isGone() {
			l.Say("got %s: stopping run %s; repeat to kill it", cli.NameOfSignal(s), l.id)
		}
		l.Printer.Hurry()
		l.stopAsked.Store(true)
		go l.cancel(ctx)
		time.AfterFunc(serverPatience, l.saySuspended)
	case n == 2:
		l.Say("got %s: killing run %s", cli.NameOfSignal(s), l.id)
		go l.kill(ctx)
	}
	return n
}

// saySuspended reports a supervisor that cannot stop the run because it is stopped by a signal.
func (l *localRun) saySuspended() {
	if p := l.worker.Suspended(); p != nil {
		l.Say("the supervisor is stopped by a signal, so run %s cannot stop; continue it with `kill -CONT %d`, or repeat the signal to kill it", l.id, p.Pid)
	}
}

// end cancels the run. If the owner has left in an orderly way, end instead stops all tasks
// together, so that the run can succeed.
func (l *localRun) end(ctx context.Context) error {
	if l.owner.endedInOrder() {
		if _, err := starter.Ask(ctx, l.run, spec.UpdateStopTogether, spec.TogetherRequest{Reason: "its program has no more requests"}); err == nil {
			return nil
		}
	}
	return l.run.Cancel(ctx)
}

// cancel asks the run to stop, repeatedly until the server answers. If that takes longer than
// [serverPatience], or the run is then stuck, the supervisor stops the processes.
func (l *localRun) cancel(ctx context.Context) {
	impatient := time.AfterFunc(serverPatience, l.stopAlone)
	l.passOn(ctx)
	for ctx.Err() == nil {
		asked, done := context.WithTimeout(ctx, cli.RequestTimeout)
		err := l.end(asked)
		done()
		if err == nil || starter.IsError[*starter.EndedError](err) {
			break
		}
		_ = retry.Sleep(ctx, cancelAgain)
	}
	if !impatient.Stop() {
		return
	}
	for retry.Sleep(ctx, serverPatience) == nil {
		if l.troubled.Load() {
			l.stopAlone()
			return
		}
	}
}

// stops returns how a signal to this command stops the processes. With torchrun they receive the
// same signal; otherwise they receive the stop signal, which lets programs save their work.
func (l *localRun) stops(came os.Signal) supervisor.StopAll {
	if !l.torchrun {
		came = nil
	}
	return stopsOf(l.spec, came)
}

// passOn makes the run send its processes the received signal when it stops, like torchrun.
func (l *localRun) passOn(ctx context.Context) {
	if !l.torchrun {
		return
	}
	how := l.stops(l.interrupted.First)
	how.Later = true
	l.worker.StopAll(how)
	ctx, done := context.WithTimeout(ctx, killAnswer)
	defer done()
	l.hosts.StopAll(ctx, how)
}

// cancelAgain is the pause after a failed request.
const cancelAgain = 100 * time.Millisecond

// isStopping reports whether a signal asked this command to stop the run.
func (l *localRun) isStopping() bool { return l.stopAsked.Load() }

// stopAlone makes the supervisor stop the processes in the way that the run would.
func (l *localRun) stopAlone() {
	l.alone.Do(func() {
		if l.worker.IsCut() {
			return
		}
		l.Say("%s does not stop run %s; stopping its processes without it", l.server, l.id)
		how := l.stops(l.interrupted.First)
		l.worker.StopAll(how)
		go l.hosts.StopAll(context.Background(), how)
	})
}

// stopsOf returns how the tasks are stopped. A task without a signal in the spec gets came,
// unless that is nil or SIGPIPE.
func stopsOf(given *spec.RunSpec, came os.Signal) supervisor.StopAll {
	s := given.WithDefaults()
	stop := func(t spec.Task) supervisor.Stop {
		name, grace := s.StopOf(t)
		n, _ := spec.SignalNumber(name) // the spec is valid
		if c, ok := came.(syscall.Signal); ok && c != syscall.SIGPIPE {
			if named, _ := given.StopOf(t); named == "" {
				n = int(c)
			}
		}
		return supervisor.Stop{Signal: n, Grace: grace}
	}
	all := supervisor.Stops{Stop: stop(spec.Task{})}
	for _, t := range s.TaskList() {
		all.Except(t.Name(), stop(t))
	}
	return supervisor.StopAll{Stops: all}
}

// kill asks the run to kill its processes. If it does not answer within [killAnswer], the
// supervisor kills them. A supervisor that is stopped by a signal is killed.
func (l *localRun) kill(ctx context.Context) {
	if p := l.worker.Suspended(); p != nil {
		_ = p.Kill()
	}
	ctx, done := context.WithTimeout(ctx, killAnswer)
	defer done()
	if l.worker.IsTold() {
		done() // the server has not answered so far
	}
	grace := spec.Duration(0)
	if _, err := starter.Ask(ctx, l.run, spec.UpdateTerminateAll, spec.TerminateAllRequest{Signal: "SIGKILL", Grace: &grace}); err != nil {
		l.worker.Cut()
		l.hosts.Cut()
		time.AfterFunc(cutBound, l.giveUp)
	}
}

// leftBehind returns the result of a run that was stopped or exited without the server's knowledge.
// The run is still open on the server.
func (l *localRun) leftBehind() ending {
	code, what := exitcode.Machinery, "have exited"
	if l.isStopping() {
		code, what = cli.CodeOfSignal(l.interrupted.First), "were stopped without it"
	}
	cause := fmt.Errorf("%s did not answer: the processes of run %s %s, and the next `clusterrun run`, dev or worker on this machine that reaches it stops the run", l.server, l.id, what)
	if full := cli.FullDisk(l.Global.StateDir); full != nil {
		cause = fmt.Errorf("%w; %w", cause, full)
	}
	return ending{err: &cli.ExitError{Code: code, Cause: cause}}
}
