package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func Explain(a *app) *cobra.Command {
	return onRun(a, &cobra.Command{
		Use:   "explain [flags] RUN",
		Short: "Show why a run waits, or what it is doing",
		Long: `Shows what a run waits for and its position in the queue. Of a run that executes it shows the
hosts, those that have not been heard of, the barriers at which tasks are missing, the tasks that
are silent, what is used, and, as clusterrun stacks does, what the ranks are doing and which of them
hold the others up.

` + exitCodesOfRequests,
		Example: "  clusterrun explain iris-x2k4",
	}, func(ctx context.Context, r *starter.Run) error {
		s, err := r.Status(ctx)
		if err != nil {
			return err
		}
		var d doing
		if s.State == spec.RunRunning {
			if d, err = doingOf(ctx, r, s); err != nil {
				return err
			}
		}
		if a.global.json {
			return a.printJSON(map[string]any{
				"run_id": s.RunID, "state": s.State, "unanswered": s.Unanswered, "elastic": s.Elastic, "waiting": s.Waiting, "hosts": tasksByHost(s), "last_output": s.LastOutput(),
				"silent_hosts": s.Silent, "barriers": d.barriers, "stacks": d.findings,
			})
		}
		printWhere(a, s)
		if s.State != spec.RunRunning {
			return nil
		}
		return printDoing(a, s, d)
	})
}

// doing is what the tasks of a run do.
type doing struct {
	barriers []starter.Barrier
	findings *stacktree.Findings
	problems []spec.TaskProblem // of tasks whose stacks could not be captured
}

// doingOf captures the stacks of a run. That it ends meanwhile is no error.
func doingOf(ctx context.Context, r *starter.Run, s *starter.Status) (d doing, err error) {
	ctx, cancel := context.WithTimeout(ctx, stacksTimeout)
	defer cancel()
	if d.barriers, err = r.Barriers(ctx); err != nil {
		return d, err
	}
	answer, err := r.CaptureStacks(ctx, spec.StacksRequest{})
	var ended *starter.EndedError
	switch {
	case errors.As(err, &ended):
		return d, nil
	case err != nil:
		return d, err
	}
	d.findings, d.problems = new(explained(answer, s, nil)), answer.Problems
	return d, nil
}

func printDoing(a *app, s *starter.Status, d doing) error {
	for _, h := range s.Silent {
		fmt.Fprintln(a.out, h.Text(time.Now()))
	}
	for _, b := range d.barriers {
		var missing []string
		for _, m := range b.Missing {
			missing = append(missing, m.Task)
		}
		fmt.Fprintf(a.out, "barrier %s: %d waiting, missing: %s\n", b.Name, len(b.Waiting), dash(shorten.List(missing, 8)))
	}
	var silent []string
	var used spec.LiveUsage
	for _, t := range s.Tasks {
		if u := t.Usage; u != nil {
			used.CPUs += u.CPUs
			used.GPUs += u.GPUs
			used.RSSBytes += u.RSSBytes
			if u.SilentSeconds > 0 {
				silent = append(silent, fmt.Sprintf("%s for %s", t.Name, roughly(time.Duration(u.SilentSeconds)*time.Second)))
			}
		}
	}
	if len(silent) > 0 {
		fmt.Fprintf(a.out, "silent: %s\n", shorten.List(silent, 8))
	}
	if used.RSSBytes > 0 {
		fmt.Fprintf(a.out, "in use: %.1f processors, %s\n", used.CPUs, shipped.Size(used.RSSBytes))
	}
	if d.findings == nil {
		return nil
	}
	if err := d.findings.Write(a.out); err != nil {
		return err
	}
	return leftOut(a, d.problems)
}

func printWhere(a *app, s *starter.Status) {
	switch {
	case len(s.Waiting) > 0:
		for _, w := range s.Waiting {
			fmt.Fprintf(a.out, "run %s waits for %s\n", s.RunID, waitingLine(w, time.Now()))
		}
	case !s.Open:
		fmt.Fprintf(a.out, "run %s has ended\n", s.RunID)
	case s.Unanswered:
		fmt.Fprintf(a.out, "run %s: %s\n", s.RunID, nobodyExecutes(s.RunID, s.Queue))
	default:
		hosts := tasksByHost(s)
		if len(hosts) == 0 {
			fmt.Fprintf(a.out, "run %s: %s\n", s.RunID, s.State)
		}
		for _, h := range hosts {
			fmt.Fprintf(a.out, "%s: %s\n", h.Host, h.list())
		}
		if s.Elastic != nil {
			fmt.Fprintf(a.out, "elastic: %s\n", s.Elastic)
		}
		if at := s.LastOutput(); at != nil {
			fmt.Fprintf(a.out, "last output: %s\n", lastOutput(*at))
		}
	}
}

// nobodyExecutes returns that nobody executes an open run, and what to do about it.
func nobodyExecutes(run, queue string) string {
	if spec.IsPrivateQueue(queue) || spec.IsAgentsQueue(queue) {
		return fmt.Sprintf("nobody executes it: the command that ran it is gone or does not answer; `clusterrun stop %s` ends it", run)
	}
	return fmt.Sprintf("nobody executes it; a `clusterrun worker` for the queue %s would, and `clusterrun stop %s` ends it", queue, run)
}

// hostTasks are the tasks of a run on one host.
type hostTasks struct {
	Host  string   `json:"host"`
	Tasks []string `json:"tasks"`
	// Slots is how many the host has, if these are more tasks.
	Slots int `json:"slots,omitempty"`
}

func (h hostTasks) list() string {
	const most = 8
	return shorten.List(h.Tasks, most)
}

// tasksByHost returns the tasks of a run on each of its hosts, in the order of ranks.
func tasksByHost(s *starter.Status) []hostTasks {
	hosts := []hostTasks{}
	for _, t := range s.Tasks {
		if t.Host == "" {
			continue
		}
		i := slices.IndexFunc(hosts, func(h hostTasks) bool { return h.Host == t.Host })
		if i < 0 {
			i = len(hosts)
			hosts = append(hosts, hostTasks{Host: t.Host})
		}
		hosts[i].Tasks = append(hosts[i].Tasks, t.Name)
	}
	return hosts
}
