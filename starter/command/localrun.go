package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/embedded"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// killAnswer is how long the run has to answer that it kills its processes.
	// Without an answer the supervisor is told, which needs no server.
	killAnswer = 2 * time.Second
	// cutBound is how long the run has to end after its supervisor was told to kill
	// everything: that takes the supervisor two seconds.
	cutBound = 4 * time.Second
	// maxSuccessors bounds the host workers started in place of dead ones.
	maxSuccessors = 3
	// workerStop bounds the wait for the host worker when the run has ended.
	workerStop = 10 * time.Second
)

// localRun is a run on this machine: its private host worker, its output, and
// what its owner wants of it.
type localRun struct {
	*app
	spec *spec.RunSpec
	id   string

	dir    *rundir.Dir
	server server
	client client.Client
	worker *hostWorker
	run    *starter.Run
	output *output

	signals     <-chan os.Signal
	stopping    []syscall.Signal // those that stop the run
	foreground  string           // the task that has our stdin; may be empty
	std         standardFiles
	interrupted interruption
	successors  int
	late        chan struct{} // closed when a killed run has not ended in time
	owner       *owner        // whoever coordinates the run; may be nil
}

// ending is what waiting for a run comes to.
type ending struct {
	result *spec.RunResult
	err    error
}

// closed says that the run is known to have ended on the server.
func (e ending) closed() bool {
	var terminated *starter.TerminatedError
	return e.result != nil || errors.As(e.err, &terminated)
}

// runHere runs a cluster on this machine, from nothing to its report.
func (a *app) runHere(ctx context.Context, s *spec.RunSpec, o runOptions) error {
	stopping := a.interruptSignals()
	signals, stopListening := listen(stopping)
	defer stopListening()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	l := &localRun{app: a, spec: s, id: o.id, signals: signals, stopping: stopping, foreground: o.foreground, late: make(chan struct{})}
	if l.id == "" {
		l.id = starter.NewID(s.Name)
	}
	var err error
	if l.std, err = a.standardFiles(o, func(s os.Signal) {
		select {
		case signals <- s:
		default: // there are more already than anybody needs
		}
	}); err != nil {
		return err
	}
	defer l.std.terminal.giveBack()
	if direct := directOutput(s); direct || o.foreground != "" {
		a.noStatus = true // programs write where the line would be
		if direct && !o.quiet && l.std.given() {
			l.std.watchReaders(signals)
		}
	}
	if l.owner, err = a.listenToOwner(o, signals); err != nil {
		return err
	}
	if err := l.start(ctx, cancel, o); err != nil {
		l.abort()
		if l.owner.isGone() {
			return nil
		}
		return err
	}
	abandoned := a.endAbandoned(ctx, l.client, l.server)
	l.owner.serve(ctx, l.run)
	end := l.supervise(ctx)
	disowned := l.owner.isGone() // before it could hear of this end
	l.owner.over(end)
	l.finish(end)
	abandoned()
	if r := end.result; o.quiet && r != nil && r.Verdict == spec.VerdictSucceeded {
		return a.printResult(r)
	}
	if r := end.result; disowned && r != nil && r.Verdict == spec.VerdictCancelled {
		return a.printResult(r) // it was stopped for that
	}
	return a.report(l.id, l.withSignal(end.result), end.err)
}

// start brings everything up. The first signal ends it.
func (l *localRun) start(ctx context.Context, cancel context.CancelFunc, o runOptions) (err error) {
	started := make(chan struct{})
	interrupted := make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-l.signals:
			interrupted <- s
			cancel()
		case <-started:
		}
	}()
	defer func() {
		close(started)
		select {
		case s := <-interrupted:
			err = &exitError{code: codeOfSignal(s), cause: fmt.Errorf("got %s before the run was started", nameOfSignal(s))}
		default:
		}
	}()
	if l.dir, err = rundir.Create(l.runsDir()); err != nil {
		return fmt.Errorf("state directory (choose another with --state-dir): %w", err)
	}
	queue := spec.TaskQueue + "/run/" + strings.ToLower(rand.Text()[:16])
	if err := l.connect(ctx, queue, o); err != nil {
		return err
	}
	// Before the run is: whoever finds it abandoned has to know of it.
	record := rundir.Record{Server: l.server.Options, Embedded: l.server.Embedded, Queue: queue, RunID: l.id, PID: os.Getpid(), Started: time.Now()}
	if err := l.dir.Save(record); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if l.run, err = starter.Start(ctx, l.client, l.spec, starter.Options{ID: l.id, Queue: queue}); err != nil {
		return err
	}
	record.ExecutionID = l.run.ExecutionID
	if err := l.dir.Save(record); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if l.output, err = l.show(l.run, l.spec, o.quiet); err != nil {
		return err
	}
	return l.lendTerminal(o)
}

// lendTerminal gives the terminal, where there is one, to the task in the
// foreground.
func (l *localRun) lendTerminal(o runOptions) error {
	t := l.std.terminal
	if t == nil {
		return nil
	}
	if !o.quiet {
		l.say("%s", l.color.dim(fmt.Sprintf("%s has this terminal; Ctrl-] three times stops the run", l.foreground)))
	}
	return t.lend(func(s os.Signal) bool { return slices.Contains(l.stopping, s.(syscall.Signal)) })
}

// connect finds the server, and has the host worker start while we dial.
func (l *localRun) connect(ctx context.Context, queue string, o runOptions) error {
	deadline := time.Now().Add(bringUpBound)
	for {
		s, err := l.bringUp(ctx)
		if err != nil {
			return err
		}
		l.server = s
		if l.worker == nil {
			l.worker, err = startHostWorker(workers.Options{
				StateDir: l.dir.Path, Queue: queue, Owned: true, LogRoot: l.logsDir(), Server: s.Options, Debug: l.debug(),
				OwnersOutput: !o.quiet && l.std.given(), Foreground: l.foreground,
			}, l.std)
			if err != nil {
				return err
			}
		}
		l.client, err = l.dialOnce(ctx, s)
		if err == nil {
			return nil
		}
		// An embedded server that was found may have been about to leave.
		if !s.Embedded || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		l.endWorker()
	}
}

// supervise waits for the end of the run, and does what signals want meanwhile.
func (l *localRun) supervise(ctx context.Context) ending {
	ended := make(chan ending, 1)
	waiting, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	go func() {
		result, err := l.run.WaitNotify(waiting, func(err error) { l.trouble(ctx, err) })
		ended <- ending{result, err}
	}()
	for {
		select {
		case end := <-ended:
			return end
		case s := <-l.signals:
			if l.signal(ctx, s) > 2 {
				return ending{err: &exitError{code: codeOfSignal(l.interrupted.first), cause: fmt.Errorf("run %s is left to itself; its host worker stops what still runs", l.id)}}
			}
		case err := <-l.worker.exited:
			if end := l.workerDied(ctx, err); end != nil {
				return *end
			}
		case <-l.late:
			return l.leftBehind()
		}
	}
}

// signal does what the n-th signal wants.
func (l *localRun) signal(ctx context.Context, s os.Signal) int {
	n := l.interrupted.add(s)
	switch n {
	case 1:
		if !l.owner.isGone() {
			l.say("got %s: stopping run %s; again to kill it", nameOfSignal(s), l.id)
		}
		go l.cancel(ctx)
	case 2:
		l.say("got %s: killing run %s", nameOfSignal(s), l.id)
		go l.kill(ctx)
	}
	return n
}

// cancel asks the run to stop, for as long as the server does not answer.
func (l *localRun) cancel(ctx context.Context) {
	for ctx.Err() == nil {
		asked, done := context.WithTimeout(ctx, requestTimeout)
		err := l.run.Cancel(asked)
		done()
		var late *starter.EndedError
		if err == nil || errors.As(err, &late) {
			return
		}
	}
}

// kill has the run kill its processes; where that cannot be had at once, the
// supervisor does it.
func (l *localRun) kill(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, killAnswer)
	defer done()
	grace := spec.Duration(0)
	if _, err := l.run.TerminateAll(ctx, spec.TerminateAllRequest{Signal: "SIGKILL", Grace: &grace}); err != nil {
		l.worker.cut()
		time.AfterFunc(cutBound, func() { close(l.late) })
	}
}

// leftBehind is the ending of a run that was killed without the server's help:
// its processes are gone, and it does not know.
func (l *localRun) leftBehind() ending {
	cause := fmt.Errorf("run %s was killed, and %s did not answer: the next clusterrun here that reaches it will end the run there", l.id, l.server)
	return ending{err: &exitError{code: codeOfSignal(l.interrupted.first), cause: cause}}
}

// workerDied starts a successor, so that the run can say what became of its
// processes. It returns an ending where there is nobody left who could.
func (l *localRun) workerDied(ctx context.Context, err error) *ending {
	if l.worker.isCut() {
		// It was told to end, and before it did it gave the run a moment to end with
		// it; late tells when that was in vain.
		return nil
	}
	if l.successors++; l.successors <= maxSuccessors {
		l.say("the host worker died (%v); starting another to find out what became of its processes", err)
		if err = l.worker.start(); err == nil {
			return nil
		}
	}
	words := l.worker.lastWords()
	asked, done := context.WithTimeout(ctx, killAnswer)
	defer done()
	_ = l.run.Terminate(asked, "its host worker died")
	return &ending{err: fmt.Errorf("the host worker of run %s keeps dying (%v):\n%s", l.id, err, words)}
}

// trouble says that the server does not answer, or the run does not get on, and
// that it does again. Our own server we bring up again, where the run knows it.
func (l *localRun) trouble(ctx context.Context, err error) {
	var stuck *starter.StuckError
	switch {
	case err == nil:
		l.say("that is over, the run goes on")
		return
	case errors.As(err, &stuck):
		l.say("run %s does not get on; the last its host worker said:\n%s", l.id, l.worker.lastWords())
		return
	}
	l.say("%s does not answer; the processes go on, waiting for it", l.server)
	if !l.server.Embedded {
		return
	}
	go func() {
		if _, err := l.home().Ensure(ctx, embedded.Start{Prefer: l.server.Address}); err != nil && ctx.Err() == nil {
			l.say("%s", err)
		}
	}()
}

// finish ends the host worker, and shows what output is left.
func (l *localRun) finish(end ending) {
	var worker sync.WaitGroup
	worker.Go(l.endWorker)
	if end.result == nil {
		// Without a result nobody has seen the end of all processes. They have
		// ended, and all their output is there, when the worker has.
		worker.Wait()
	}
	l.output.finish(l.signals)
	worker.Wait()
	l.std.terminal.giveBack()
	l.client.Close()
	l.leave(end.closed())
}

// leave gives up the run's directory. What is in it is needed for as long as
// the run may be open on the server: it is how others find out that the run's
// owner is gone.
func (l *localRun) leave(closed bool) {
	if !closed {
		l.dir.Close()
		return
	}
	_ = l.dir.Remove()
}

// abort is finish for a run that did not get as far as that.
func (l *localRun) abort() {
	if l.run != nil {
		ctx, done := context.WithTimeout(context.Background(), killAnswer)
		defer done()
		_ = l.run.Cancel(ctx)
	}
	l.endWorker()
	if l.client != nil {
		l.client.Close()
	}
	if l.dir != nil {
		l.leave(l.run == nil)
	}
}

func (l *localRun) endWorker() {
	if l.worker == nil {
		return
	}
	bound := workerStop
	if l.worker.isCut() {
		bound = 0 // it has had its time, and does not need us any more
	}
	ctx, done := context.WithTimeout(context.Background(), bound)
	defer done()
	l.worker.stop(ctx)
	l.worker = nil
}

// withSignal gives a run that was stopped by a signal to us the exit code of that
// signal, and names it (TE-39).
func (l *localRun) withSignal(r *spec.RunResult) *spec.RunResult {
	if l.interrupted.first == nil || r == nil || r.Verdict != spec.VerdictCancelled {
		return r
	}
	changed := *r
	changed.ExitCode = codeOfSignal(l.interrupted.first)
	changed.Message = fmt.Sprintf("clusterrun (process %d) got %s. %s", os.Getpid(), nameOfSignal(l.interrupted.first), r.Message)
	return &changed
}
