package submit

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// plan shows where a run's tasks would be placed.
func plan(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *validateOptions) error {
	s, err := specs.Read(a, cmd, args, &o.f)
	if err != nil {
		return err
	}
	var ships *shipped.Listing
	if s.Ship.Dir != "" {
		if ships, err = shipped.List(s.Ship.Dir, specs.ShipOptions(s)); err != nil {
			return specs.ShipProblems(err)
		}
	}
	return cli.OnFleet(ctx, a, o.queue, func(f *starter.Fleet) error {
		plan, err := f.Plan(ctx, s)
		if err != nil {
			return err
		}
		return printPlan(a, s, plan, ships)
	})
}

func printPlan(a *cli.App, s *spec.RunSpec, plan fleet.Grant, ships *shipped.Listing) error {
	tasks := s.TaskList()
	hosts := []report.HostTasks{}
	for _, p := range plan.Places {
		h := report.HostTasks{Host: p.Host, Slots: p.Slots}
		for _, ranks := range p.Ranks {
			for _, t := range tasks[ranks.First:ranks.End] {
				h.Tasks = append(h.Tasks, t.Name())
			}
		}
		hosts = append(hosts, h)
	}
	if a.Global.JSON {
		out := map[string]any{"hosts": hosts, "waits": plan.Refusal}
		if s.IsElastic() {
			out["range"] = s.Hosts.Count
		}
		if ships != nil {
			out["archive"] = map[string]any{"size": ships.Size, "files": ships.Files}
		}
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	} else {
		for _, h := range hosts {
			fmt.Fprintf(a.Out, "%s: %s\n", h.Host, h.List())
			if h.Slots > 0 {
				a.Say("%s has %s for these %d tasks, and accepts nothing else meanwhile", h.Host, units.Count(h.Slots, "slot", "slots"), len(h.Tasks))
			}
		}
		if ships != nil {
			a.Say("it would ship %s in %s of %s", units.Bytes(ships.Size), units.Count(ships.Files, "file", "files"), ships.Dir)
		}
		if plan.Refusal != "" {
			a.Say("%s", plan.Refusal)
		} else if s.IsElastic() {
			a.Say("%s", elasticPlan(s, len(hosts)))
		}
	}
	if plan.Refusal != "" {
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// elasticPlan describes when an elastic run would start, given how many hosts have capacity.
func elasticPlan(s *spec.RunSpec, hosts int) string {
	least, most := s.Hosts.Count.Bounds()
	if hosts == most {
		return fmt.Sprintf("it starts immediately on %d hosts, its maximum (minimum %d)", hosts, least)
	}
	return fmt.Sprintf("it waits %s for %d hosts, then starts on %d; its minimum is %d",
		s.WithDefaults().Elastic.JoinWait, most, hosts, least)
}
