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

// passedOn are the signals that processes give a meaning to, such as Slurm's notice of a time
// limit. They go to the processes, as with mpirun.
var passedOn = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2}

// catchPassed catches the signals that are passed on to processes, from before there are any,
// until stop is called. Those that stop the run are left out.
func catchPassed(stopping []syscall.Signal) (signals chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	for _, s := range passedOn {
		if !slices.Contains(stopping, s) && !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// passSignals passes signals on to the processes of a run until ctx is done: to those of one host
// if it is named.
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

// passSignal sends a signal to all processes of the run. An agent sends it to those of its host:
// whoever sends signals to agents sends them to each.
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
		a.Say("got %s, which is not passed on: the run does not answer", name)
		return
	case len(tasks) == 0:
		a.Say("got %s, which is not passed on: no process runs", name)
		return
	default:
		_, err = run.SignalTask(ctx, spec.SignalRequest{Tasks: tasks, Signal: name})
	}
	if err != nil && ctx.Err() != context.Canceled {
		a.Say("got %s, which is not passed on: %s", name, err)
	}
}

// livingTasks returns the tasks with a process, on a host if one is named.
func livingTasks(s *starter.Status, host string) (names []string) {
	for _, t := range s.Tasks {
		if t.State == spec.TaskRunning && (host == "" || t.Host == host) {
			names = append(names, t.Name)
		}
	}
	return names
}

// host returns the name of this agent's host; empty if this is no agent.
func (a *agentsOf) host() string {
	switch {
	case a.joined != nil:
		return a.joined.Host
	case a.head != nil:
		return a.head.Host
	}
	return ""
}
