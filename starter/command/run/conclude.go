package run

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// conclude ends what start brought up, shows what output is left, and tells how the
// run has ended. For whoever reads our output it waits in await alone.
func (l *localRun) conclude(end ending, o runOptions, abandoned func()) error {
	disowned := l.owner.isGone() // before it could hear of this end
	l.owner.over(end)
	end.result = o.asTorchrun(l.agents.withAgents(l.withSignal(end.result), o.meeting))
	shown := l.finish(&end)
	abandoned()
	var said error
	told := l.await(func() {
		l.Printer.Flush()
		said = l.tell(end, o, disowned)
		l.Printer.Flush()
	})
	if !told {
		l.Printer.GiveUp()
		said = &cli.ExitError{Code: end.code()}
	}
	switch {
	case cli.CodeOf(said) != exitcode.OK:
	case !told || !shown:
		said = &cli.ExitError{Code: cli.CodeOfSignal(l.interrupted.First)}
	case l.broken.Load():
		said = &cli.ExitError{Code: exitcode.Machinery}
	}
	return said
}

// await waits for f, which writes to our output, and reports whether it has returned.
// Whoever reads our output may have stopped to: after the first signal of all he is
// waited for only so long, and the next one ends that.
func (l *localRun) await(f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	var late <-chan time.Time
	if l.interrupted.Count > 0 {
		late = time.After(cli.ReadersBound)
	}
	for {
		select {
		case <-done:
			return true
		case <-late:
			return false
		case s := <-l.signals:
			if s == syscall.SIGPIPE {
				continue // the writes say so as well
			}
			switch l.interrupted.Add(s) {
			case 0:
			case 1:
				l.Printer.Hurry()
				late = time.After(cli.ReadersBound)
			default:
				return false
			}
		}
	}
}

// finish ends the host worker, and reports whether all output that was left has been
// shown.
func (l *localRun) finish(end *ending) (shown bool) {
	if end.result != nil {
		// Nobody has to wait for the host worker to take leave of the server.
		how := stopsOf(l.spec, nil)
		how.Recorded = true
		l.worker.StopAll(how)
	}
	var worker sync.WaitGroup
	worker.Go(l.endWorker)
	l.endHosts()
	l.agents.end(l.run, l.client)
	if end.result == nil {
		// Without a result nobody has seen the end of all processes. They have
		// ended, and all their output is there, when the worker has.
		worker.Wait()
		end.exits, _ = workers.LastExits(l.dir.Path) // what nobody has written down, nobody knows
	}
	if shown = l.await(l.output.finish); !shown {
		l.Printer.Through(nil)
		l.Say("nobody reads the output: not all of it was shown; %s", l.output.logs)
	}
	worker.Wait()
	noteEnd(logRoot(l.App, l.spec), l.run, *end)
	l.std.Terminal.GiveBack()
	l.client.Close()
	l.leave(end.closed())
	return shown
}

// leave gives up the run's directory. What is in it is needed for as long as
// the run may be open on the server: it is how others find out that the run's
// owner is gone.
func (l *localRun) leave(closed bool) {
	if !closed && l.agents.joined == nil {
		l.dir.Close()
		return
	}
	_ = l.dir.Remove()
}

// tell reports how the run has ended.
func (l *localRun) tell(end ending, o runOptions, disowned bool) error {
	switch r := end.result; {
	case l.agents.joined != nil:
		return l.tellJoined(end)
	case r == nil && !end.closed():
		return report.Report(l.App, l.id, l.unrecorded(end), nil)
	case r != nil && (o.quiet || o.torchrun) && r.Verdict == spec.VerdictSucceeded,
		r != nil && disowned && (r.Verdict == spec.VerdictCancelled || r.Verdict == spec.VerdictSucceeded): // it was stopped for that
		return report.PrintResult(l.App, r)
	}
	return report.Report(l.App, l.id, end.result, end.err)
}

// unrecorded returns the result of a run that has not ended on the server: what is known
// here of it.
func (l *localRun) unrecorded(end ending) *spec.RunResult {
	r := report.Unreachable(end.err)
	if l.isStopping() {
		r.Verdict = spec.VerdictCancelled
	}
	for _, t := range l.spec.WithDefaults().TaskList() {
		task := spec.TaskResult{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank}
		if e, ok := end.exits[t.Name()]; ok {
			task.Exit = &e
		}
		r.Tasks = append(r.Tasks, task)
	}
	r.Message = strings.ToUpper(r.Message[:1]) + r.Message[1:]
	return l.withSignal(r)
}

// asTorchrun gives a run that failed because a process did the exit code of torchrun.
func (o runOptions) asTorchrun(r *spec.RunResult) *spec.RunResult {
	if !o.torchrun || r == nil || r.Verdict != spec.VerdictFailed || r.FirstFailure == nil {
		return r
	}
	changed := *r
	if changed.ExitCode = 1; r.ExitCode != 1 {
		changed.Message += fmt.Sprintf("\nThe exit code is 1, as with torchrun; `clusterrun list` and `clusterrun wait` have that of the process, %d.", r.ExitCode)
	}
	return &changed
}

// withSignal gives a run that was stopped by a signal to us the exit code of that
// signal, and names it.
func (l *localRun) withSignal(r *spec.RunResult) *spec.RunResult {
	if l.interrupted.First == nil || r == nil || r.Verdict != spec.VerdictCancelled {
		return r
	}
	changed := *r
	changed.ExitCode = cli.CodeOfSignal(l.interrupted.First)
	changed.Reason = fmt.Sprintf("clusterrun (process %d) got %s", os.Getpid(), cli.NameOfSignal(l.interrupted.First))
	changed.Message = outcome.Sentence(&changed)
	return &changed
}
