package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// serverPatience is how long the server has to take the request to stop a run, or
	// the run to get on after it. Without that the supervisor is told, which needs no
	// server.
	serverPatience = 5 * time.Second
	// killAnswer is how long the run has to answer that it kills its processes.
	killAnswer = 2 * time.Second
	// cutBound is how long the run has to end after its supervisor was told to kill
	// everything: that takes the supervisor two seconds.
	cutBound = 4 * time.Second
	// lastMoment is how long the run has to end after the supervisor has, which waits
	// for it as well.
	lastMoment = time.Second
)

// signal does what the n-th signal wants.
func (l *localRun) signal(ctx context.Context, s os.Signal) int {
	n := l.interrupted.Add(s)
	switch {
	case l.agents.mayLeave(l.spec):
		l.leaveRun(s, n)
	case n == 1:
		if !l.owner.isGone() {
			l.Say("got %s: stopping run %s; again to kill it", cli.NameOfSignal(s), l.id)
		}
		l.Printer.Hurry()
		close(l.stopAsked)
		go l.cancel(ctx)
	case n == 2:
		l.Say("got %s: killing run %s", cli.NameOfSignal(s), l.id)
		go l.kill(ctx)
	}
	return n
}

// end cancels the run. One of an owner that has ended in order ends well.
func (l *localRun) end(ctx context.Context) error {
	if l.owner.endedInOrder() {
		if _, err := l.run.StopTogether(ctx, spec.TogetherRequest{Reason: "its program has no more to ask"}); err == nil {
			return nil
		}
	}
	return l.run.Cancel(ctx)
}

// cancel asks the run to stop, for as long as the server does not answer. Where that
// takes too long, or the run does not get on then, the supervisor stops the processes.
func (l *localRun) cancel(ctx context.Context) {
	impatient := time.AfterFunc(serverPatience, l.stopAlone)
	l.passOn(ctx)
	for ctx.Err() == nil {
		asked, done := context.WithTimeout(ctx, cli.RequestTimeout)
		err := l.end(asked)
		done()
		var late *starter.EndedError
		if err == nil || errors.As(err, &late) {
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

// stops returns how the processes are stopped because of a signal to us. torchrun sends them the
// same one; elsewhere it is the stop signal, by which programs tell that they may save their work.
func (l *localRun) stops(came os.Signal) supervisor.StopAll {
	if !l.torchrun {
		came = nil
	}
	return stopsOf(l.spec, came)
}

// passOn has the run's stop send its processes the signal that came, as torchrun does.
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

// cancelAgain paces requests that fail at once.
const cancelAgain = 100 * time.Millisecond

// isStopping reports whether a signal has asked for the end of the run.
func (l *localRun) isStopping() bool { return worker.IsClosed(l.stopAsked) }

// stopAlone has the supervisor stop the processes, as the run would.
func (l *localRun) stopAlone() {
	l.alone.Do(func() {
		if l.worker.IsCut() {
			return
		}
		l.Say("%s does not stop run %s; its processes are stopped without it", l.server, l.id)
		how := l.stops(l.interrupted.First)
		l.worker.StopAll(how)
		go l.hosts.StopAll(context.Background(), how)
	})
}

// stopsOf returns how the tasks are stopped because of a signal to us, or nil: with that one,
// unless the spec names another.
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

// kill has the run kill its processes; where that cannot be had at once, the
// supervisor does it.
func (l *localRun) kill(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, killAnswer)
	defer done()
	if l.worker.IsTold() {
		done() // there was no answer before
	}
	grace := spec.Duration(0)
	if _, err := l.run.TerminateAll(ctx, spec.TerminateAllRequest{Signal: "SIGKILL", Grace: &grace}); err != nil {
		l.worker.Cut()
		l.hosts.Cut()
		time.AfterFunc(cutBound, l.giveUp)
	}
}

// leftBehind returns the ending of a run that was stopped without the server, which still
// takes it for running.
func (l *localRun) leftBehind() ending {
	cause := fmt.Errorf("%s did not answer: the processes of run %s were stopped without it, and the next `clusterrun run`, dev or worker here that reaches it ends the run there", l.server, l.id)
	if full := cli.FullDisk(l.Global.StateDir); full != nil {
		cause = fmt.Errorf("%w; %w", cause, full)
	}
	return ending{err: &cli.ExitError{Code: cli.CodeOfSignal(l.interrupted.First), Cause: cause}}
}
