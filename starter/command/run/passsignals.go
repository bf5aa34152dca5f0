package run

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// passedOn lists signals that programs use for their own purposes, such as Slurm's warning of a
// time limit. Like mpirun, run passes them on to the processes.
var passedOn = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2}

// catchPassed catches the signals that are passed on to processes, until stop is called. It
// omits signals that stop the run. Call it before the first process starts, so that no signal is
// lost.
func catchPassed(stopping []syscall.Signal) (signals chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	for _, s := range passedOn {
		if !slices.Contains(stopping, s) && !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// passSignals passes signals on to a run's processes until ctx is done. If host is not empty,
// only processes on that host receive them.
func passSignals(ctx context.Context, a *cli.App, run *starter.Run, host string, signals <-chan os.Signal) {
	for {
		select {
		case s := <-signals:
			passSignal(ctx, a, run, host, cli.NameOfSignal(s))
		case <-ctx.Done():
			return
		}
	}
}

// passSignal sends a signal to the run's processes. An agent sends it only to processes on its own
// host, because whoever sends the signal sends it to every agent.
func passSignal(ctx context.Context, a *cli.App, run *starter.Run, host, name string) {
	ctx, done := context.WithTimeout(ctx, cli.RequestTimeout)
	defer done()
	s, err := run.Status(ctx)
	var tasks []string
	if err == nil {
		tasks = livingTasks(s, host)
	}
	switch {
	case err != nil:
	case s.Unanswered:
		a.Say("got %s, but did not pass it on: the run does not answer", name)
		return
	case len(tasks) == 0:
		a.Say("got %s, but did not pass it on: no process is running", name)
		return
	default:
		_, err = starter.Ask(ctx, run, spec.UpdateSignalTask, spec.SignalRequest{Tasks: tasks, Signal: name})
	}
	if err != nil && ctx.Err() != context.Canceled {
		a.Say("got %s, but did not pass it on: %s", name, err)
	}
}

// livingTasks returns the tasks with a running process. If host is not empty, it returns only
// tasks on that host.
func livingTasks(s *starter.Status, host string) (names []string) {
	for _, t := range s.Tasks {
		if t.State == spec.TaskRunning && (host == "" || t.Host == host) {
			names = append(names, t.Name)
		}
	}
	return names
}

// host returns the name of this agent's host, or "" if no agents meet.
func (a *agentsOf) host() string {
	switch {
	case a.joined != nil:
		return a.joined.Host
	case a.head != nil:
		return a.head.Host
	}
	return ""
}
