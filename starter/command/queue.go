package command

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func (a *app) queueCommand() *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "queue [flags]",
		Short: "Show the runs that wait for hosts, in their order, and what each waits for",
		Long: `Shows the runs that wait for room on the hosts of a queue, in the order in which they
get it: by priority, 1 before 5, and then by age. A smaller run passes a larger one only
where that does not delay the larger.

` + exitCodesOfRequests,
		Example: "  clusterrun queue\n  clusterrun queue --json | jq -r '.[0].why'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd.Context(), queue, func(f *starter.Fleet) error {
				waiting, err := f.Waiting(cmd.Context())
				if err != nil {
					return err
				}
				if a.global.json {
					if waiting == nil {
						waiting = []fleet.Waiting{}
					}
					return a.printJSON(waiting)
				}
				a.printWaiting(waiting)
				return nil
			})
		},
	}
	queueFlag(cmd, &queue)
	return cmd
}

func (a *app) printWaiting(waiting []fleet.Waiting) {
	if len(waiting) == 0 {
		a.say("no run waits")
		return
	}
	now := time.Now()
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "POSITION\tRUN\tPRIORITY\tTASKS\tWAITS\tFOR")
	for _, r := range waiting {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t%s\n", r.Position, r.Run.WorkflowID, r.Priority, r.Tasks, ago(now, r.Since), r.Why)
	}
	w.Flush()
}

func (a *app) explainCommand() *cobra.Command {
	var execution string
	cmd := &cobra.Command{
		Use:   "explain [flags] RUN",
		Short: "Say why a run waits, or where it is",
		Long: `Says what a run waits for and what its position in the queue is, or on which hosts it
has been placed.

` + exitCodesOfRequests,
		Example: "  clusterrun explain iris-x2k4",
		Args:    oneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.dialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			s, err := starter.Get(c, args[0], execution).Status(cmd.Context())
			if err != nil {
				return err
			}
			if a.global.json {
				return a.printJSON(map[string]any{"run_id": s.RunID, "state": s.State, "waiting": s.Waiting, "hosts": tasksByHost(s)})
			}
			a.printWhere(s)
			return nil
		},
	}
	cmd.Flags().StringVar(&execution, "execution", "", "`ID` of one execution (Temporal's run ID), where several had the same run ID")
	return cmd
}

func (a *app) printWhere(s *starter.Status) {
	switch {
	case len(s.Waiting) > 0:
		for _, w := range s.Waiting {
			fmt.Fprintf(a.out, "run %s waits for %s\n", s.RunID, waitingLine(w, time.Now()))
		}
	case !s.Open:
		fmt.Fprintf(a.out, "run %s has ended\n", s.RunID)
	default:
		hosts := tasksByHost(s)
		if len(hosts) == 0 {
			fmt.Fprintf(a.out, "run %s: %s\n", s.RunID, s.State)
		}
		for _, h := range hosts {
			fmt.Fprintf(a.out, "%s: %s\n", h.Host, h.list())
		}
	}
}
