package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// showWhy prints why a run is waiting, or what its tasks are doing.
func showWhy(ctx context.Context, a *cli.App, r *starter.Run, s *starter.Status) error {
	var d doing
	if s.State == spec.RunRunning {
		var err error
		if d, err = doingOf(ctx, r, s); err != nil {
			return err
		}
	}
	if a.Global.JSON {
		return a.PrintJSON(map[string]any{"run_id": s.RunID, "state": s.State, "facts": s.Facts, "hosts": tasksByHost(s), "barriers": d.barriers, "stacks": d.findings})
	}
	for _, f := range s.Facts {
		fmt.Fprintln(a.Out, f)
	}
	for _, h := range tasksByHost(s) {
		fmt.Fprintf(a.Out, "%s: %s\n", h.Host, h.List())
	}
	for _, b := range d.barriers {
		missing := list.Of(b.Missing, func(m barriers.Missing) string { return m.Task })
		fmt.Fprintf(a.Out, "barrier %s: %d waiting, missing: %s\n", b.Name, len(b.Waiting), cli.OrDash(shorten.List(missing, 8)))
	}
	if d.findings == nil {
		return nil
	}
	if err := d.findings.Write(a.Out); err != nil {
		return err
	}
	return cli.LeftOut(a, d.problems)
}

// doing describes what a run's tasks are doing.
type doing struct {
	barriers []barriers.Barrier
	findings *stacktree.Findings
	problems []spec.TaskProblem // of tasks without captured stacks
}

// doingOf captures a run's stacks. It does not return an error if the run ends before the stacks
// are captured.
func doingOf(ctx context.Context, r *starter.Run, s *starter.Status) (d doing, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.AnswerTimeout)
	defer cancel()
	if d.barriers, err = barriers.Open(ctx, r); err != nil {
		return d, err
	}
	answer, err := starter.Ask(ctx, r, spec.UpdateCaptureStacks, spec.StacksRequest{Again: spec.DurationOf(secondLook)})
	switch {
	case starter.IsError[*starter.EndedError](err):
		return d, nil
	case err != nil:
		return d, err
	}
	d.findings, d.problems = new(Explained(answer, s, nil)), answer.Problems
	return d, nil
}

// tasksByHost returns a run's tasks by host, in rank order.
func tasksByHost(s *starter.Status) []report.HostTasks {
	hosts := []report.HostTasks{}
	for _, t := range s.Tasks {
		if t.Host == "" {
			continue
		}
		i := slices.IndexFunc(hosts, func(h report.HostTasks) bool { return h.Host == t.Host })
		if i < 0 {
			i = len(hosts)
			hosts = append(hosts, report.HostTasks{Host: t.Host})
		}
		hosts[i].Tasks = append(hosts[i].Tasks, t.Name)
	}
	return hosts
}
