package look

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/size"
)

// showWhy prints the reason why a run waits, or the activity of its tasks.
func showWhy(ctx context.Context, a *cli.App, r *starter.Run, s *starter.Status) error {
	var d doing
	if s.State == spec.RunRunning {
		var err error
		if d, err = doingOf(ctx, r, s); err != nil {
			return err
		}
	}
	if a.Global.JSON {
		return a.PrintJSON(map[string]any{
			"run_id": s.RunID, "state": s.State, "unanswered": s.Unanswered, "elastic": s.Elastic, "waiting": s.Waiting, "hosts": tasksByHost(s), "last_output": s.LastOutput(),
			"silent_hosts": s.Silent, "barriers": d.barriers, "stacks": d.findings,
			"preemptions": s.Preemptions, "pending_since": s.PendingSince, "notice": s.Notice,
		})
	}
	if line := outcome.Preempted(s.Preemptions, s.PendingSince, time.Local); line != "" && s.Open {
		fmt.Fprintln(a.Out, line)
	}
	if s.Notice != nil {
		fmt.Fprintf(a.Out, "notice: %s\n", outcome.StopNotice(*s.Notice, time.Now()))
	}
	printWhere(a, s)
	if s.State != spec.RunRunning {
		return nil
	}
	return printDoing(a, s, d)
}

// doing describes the activity of a run's tasks.
type doing struct {
	barriers []starter.Barrier
	findings *stacktree.Findings
	problems []spec.TaskProblem // of tasks whose stacks could not be captured
}

// doingOf captures the stacks of a run. It returns no error if the run ends before it is done.
func doingOf(ctx context.Context, r *starter.Run, s *starter.Status) (d doing, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.AnswerTimeout)
	defer cancel()
	if d.barriers, err = r.Barriers(ctx); err != nil {
		return d, err
	}
	answer, err := starter.AskPatiently(ctx, cli.RequestTimeout, r, spec.UpdateCaptureStacks, spec.StacksRequest{Again: spec.DurationOf(secondLook)})
	switch {
	case starter.IsError[*starter.EndedError](err):
		return d, nil
	case err != nil:
		return d, err
	}
	d.findings, d.problems = new(Explained(answer, s, nil)), answer.Problems
	return d, nil
}

func printDoing(a *cli.App, s *starter.Status, d doing) error {
	for _, h := range s.Silent {
		fmt.Fprintln(a.Out, h.Text(time.Now()))
	}
	for _, b := range d.barriers {
		missing := list.Of(b.Missing, func(m starter.MissingTask) string { return m.Task })
		fmt.Fprintf(a.Out, "barrier %s: %d waiting, missing: %s\n", b.Name, len(b.Waiting), cli.OrDash(shorten.List(missing, 8)))
	}
	var silent []string
	for _, t := range s.Tasks {
		if u := t.Usage; u != nil && u.SilentSeconds > 0 {
			silent = append(silent, fmt.Sprintf("%s for %s", t.Name, cli.Roughly(time.Duration(u.SilentSeconds)*time.Second)))
		}
	}
	if len(silent) > 0 {
		fmt.Fprintf(a.Out, "silent: %s\n", shorten.List(silent, 8))
	}
	if used := usageOfRun(s).Usage; used.RSSBytes > 0 {
		fmt.Fprintf(a.Out, "in use: %.1f processors, %s\n", used.CPUs, size.Of(used.RSSBytes))
	}
	if d.findings == nil {
		return nil
	}
	if err := d.findings.Write(a.Out); err != nil {
		return err
	}
	return cli.LeftOut(a, d.problems)
}

func printWhere(a *cli.App, s *starter.Status) {
	switch {
	case len(s.Waiting) > 0:
		for _, w := range s.Waiting {
			fmt.Fprintf(a.Out, "run %s waits for %s\n", s.RunID, report.WaitingLine(w, time.Now()))
		}
	case !s.Open:
		fmt.Fprintf(a.Out, "run %s has ended\n", s.RunID)
	case s.Unanswered:
		fmt.Fprintf(a.Out, "run %s: %s\n", s.RunID, nobodyExecutes(s.RunID, s.Queue))
	default:
		hosts := tasksByHost(s)
		if len(hosts) == 0 {
			fmt.Fprintf(a.Out, "run %s: %s\n", s.RunID, s.State)
		}
		for _, h := range hosts {
			fmt.Fprintf(a.Out, "%s: %s\n", h.Host, h.List())
		}
		if s.Elastic != nil {
			fmt.Fprintf(a.Out, "elastic: %s\n", s.Elastic)
		}
		if at := s.LastOutput(); at != nil {
			fmt.Fprintf(a.Out, "last output: %s\n", lastOutput(*at))
		}
	}
}

// nobodyExecutes returns a message that no worker executes an open run, with the remedy.
func nobodyExecutes(run, queue string) string {
	if spec.IsPrivateQueue(queue) || spec.IsAgentsQueue(queue) {
		return fmt.Sprintf("no process executes it: the command that ran it is gone or does not answer; `clusterrun stop %s` ends it", run)
	}
	return fmt.Sprintf("no worker executes it; a `clusterrun worker` for the queue %s would, and `clusterrun stop %s` ends it", queue, run)
}

// tasksByHost returns the tasks of a run on each of its hosts, in the order of ranks.
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
