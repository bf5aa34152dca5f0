package run

import (
	"context"
	"fmt"
	"maps"
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

// conclude shuts down everything that start brought up, shows the remaining output and reports the
// run's end. Only await waits for the reader of our output.
func (l *localRun) conclude(end ending, abandoned func()) error {
	disowned := l.owner.isGone() // read before the owner is notified of the end
	l.owner.over(end)
	end.result = l.asTorchrun(l.agents.withAgents(l.withSignal(end.result), l.meeting))
	shown := l.finish(&end)
	abandoned()
	var said error
	told := l.await(func() {
		l.Printer.Flush()
		said = l.tell(end, disowned)
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

// await waits for f, which writes to our output, and reports whether f has returned. Because the
// reader of our output may have stopped reading, await waits at most [cli.ReadersBound] after the
// first signal, and returns at the next one.
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
				continue // writes that fail also report it
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

// finish stops the host worker, and reports whether all remaining output was shown.
func (l *localRun) finish(end *ending) (shown bool) {
	if end.result != nil {
		// The result is recorded, so the host worker does not need to report to the server.
		how := stopsOf(l.spec, nil)
		how.Recorded = true
		l.worker.StopAll(how)
	}
	var worker sync.WaitGroup
	worker.Go(l.endWorker)
	elsewhere := l.endsElsewhere(end)
	l.endHosts()
	l.agents.end(l.run, l.client)
	if !end.closed() {
		l.output.stop() // the sweep may never end
	}
	if end.result == nil {
		// If there is no result, processes may still be running. When the host worker has exited,
		// they have also exited, and all their output is in the logs.
		worker.Wait()
		here, _ := workers.LastExits(l.dir.Path) // exits that were not recorded remain unknown
		maps.Copy(elsewhere, here)
		end.exits = elsewhere
	}
	if shown = l.await(l.output.finish); !shown {
		l.Printer.Through(nil)
		l.Say("not all output was shown because nobody reads it; %s", l.output.logs)
	}
	if end.result != nil {
		l.leave(true) // the run's files are not needed after its release
	}
	worker.Wait()
	l.std.Terminal.GiveBack()
	l.client.Close()
	if end.result == nil {
		l.leave(end.closed())
	}
	return shown
}

// endsElsewhere returns how tasks on other hosts ended. It is used if the server does not report
// this.
func (l *localRun) endsElsewhere(end *ending) map[string]spec.Exit {
	if end.result != nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), roomWithin)
	defer done()
	ends, _ := l.hosts.Ends(ctx) // those on a lost host remain unknown
	return ends.Exits
}

// leave gives up the run's directory. It keeps the directory while the run may be open on the
// server, so that other commands can detect that the run's owner is gone.
func (l *localRun) leave(closed bool) {
	if !closed && l.agents.joined == nil {
		l.dir.Close()
		return
	}
	_ = l.dir.Remove()
}

// tell reports the run's end.
func (l *localRun) tell(end ending, disowned bool) error {
	switch r := end.result; {
	case l.agents.joined != nil:
		return l.tellJoined(end)
	case r == nil && !end.closed():
		return report.Report(l.App, l.id, l.unrecorded(end), nil)
	case r != nil && (l.quiet || l.torchrun) && r.Verdict == spec.VerdictSucceeded,
		r != nil && disowned && (r.Verdict == spec.VerdictCancelled || r.Verdict == spec.VerdictSucceeded): // the run ended because its owner is gone
		if line := outcome.Dropped(r); line != "" {
			l.Say("%s", line)
		}
		return report.PrintResult(l.App, r)
	}
	return report.Report(l.App, l.id, end.result, end.err)
}

// unrecorded returns a result, with the exits known here, for a run that has not ended on the
// server.
func (l *localRun) unrecorded(end ending) *spec.RunResult {
	r := report.Unreachable(end.err)
	if l.isStopping() {
		r.Verdict = spec.VerdictCancelled
	}
	if l.sweep != nil {
		r.Tasks = []spec.TaskResult{}
		return l.withSignal(r)
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

// asTorchrun returns r with torchrun's exit code if the run failed because a process failed.
func (o runOptions) asTorchrun(r *spec.RunResult) *spec.RunResult {
	if !o.torchrun || r == nil || r.Verdict != spec.VerdictFailed || r.FirstFailure == nil {
		return r
	}
	changed := *r
	if changed.ExitCode = 1; r.ExitCode != 1 {
		changed.Message += fmt.Sprintf("\nThe exit code is 1, as with torchrun; `clusterrun list` and `clusterrun wait` show the process's exit code, %d.", r.ExitCode)
	}
	return &changed
}

// If a signal to this command stopped the run, withSignal returns r with the signal's exit code and
// name.
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
