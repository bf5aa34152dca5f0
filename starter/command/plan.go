package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (a *app) planCommand() *cobra.Command {
	f := &specFlags{}
	var queue string
	cmd := &cobra.Command{
		Use:   "plan [flags] SPEC | -- COMMAND [ARG...]",
		Short: "Say where a run would go now, and start nothing",
		Long: `Says on which hosts of the queue the tasks of a run would be placed now, or what it
would wait for. SPEC and flags are those of submit. Nothing is started or kept.

Exit codes:
  0    there is room for it now
  1    there is none now; what is missing is on stderr
  2    mistake in the command line, or an invalid run spec
  125  the server could not be reached, or the queue has no hosts`,
		Example: `  clusterrun plan iris.yaml
  clusterrun plan -n 16 -- python3 train.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.specOf(cmd, args, f)
			if err != nil {
				return err
			}
			return a.onFleet(cmd.Context(), queue, func(f *starter.Fleet) error {
				plan, err := f.Plan(cmd.Context(), s)
				if err != nil {
					return err
				}
				return a.printPlan(s, plan)
			})
		},
	}
	cmd.Flags().SetInterspersed(false)
	queueFlag(cmd, &queue)
	f.register(cmd.Flags())
	return cmd
}

func (a *app) printPlan(s *spec.RunSpec, plan fleet.Grant) error {
	tasks := s.TaskList()
	hosts := []hostTasks{}
	for _, p := range plan.Places {
		h := hostTasks{Host: p.Host}
		for _, ranks := range p.Ranks {
			for _, t := range tasks[ranks.First:ranks.End] {
				h.Tasks = append(h.Tasks, t.Name())
			}
		}
		hosts = append(hosts, h)
	}
	if a.global.json {
		if err := a.printJSON(map[string]any{"hosts": hosts, "waits": plan.Refusal}); err != nil {
			return err
		}
	} else {
		for _, h := range hosts {
			fmt.Fprintf(a.out, "%s: %s\n", h.Host, h.list())
		}
		if plan.Refusal != "" {
			a.say("%s", plan.Refusal)
		}
	}
	if plan.Refusal != "" {
		return &exitError{code: 1}
	}
	return nil
}
