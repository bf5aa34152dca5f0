package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/shorten"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (a *app) explainCommand() *cobra.Command {
	return a.onRun(&cobra.Command{
		Use:   "explain [flags] RUN",
		Short: "Show why a run waits, or where it runs",
		Long: `Shows what a run waits for and its position in the queue, or the hosts on which it has been
placed.

` + exitCodesOfRequests,
		Example: "  clusterrun explain iris-x2k4",
	}, func(ctx context.Context, r *starter.Run) error {
		s, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if a.global.json {
			return a.printJSON(map[string]any{"run_id": s.RunID, "state": s.State, "unanswered": s.Unanswered, "elastic": s.Elastic, "waiting": s.Waiting, "hosts": tasksByHost(s), "last_output": s.LastOutput()})
		}
		a.printWhere(s)
		return nil
	})
}

func (a *app) printWhere(s *starter.Status) {
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
