package hosts

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

func listCommand(a *cli.App) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "Show a queue's hosts, and what runs on them",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), a, queue) },
	}
	cli.QueueFlag(cmd, &queue)
	return cmd
}

// runList implements [listCommand].
func runList(ctx context.Context, a *cli.App, queue string) error {
	return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
		hosts, err := f.Hosts(ctx)
		if err != nil {
			return err
		}
		for i := range hosts {
			hosts[i].Store = nil // its token is a secret
		}
		return a.Print(hosts, func() { printHosts(a, hosts) })
	})
}

// versionColumn returns a host worker's version, and its supervisor's if different.
func versionColumn(version, supervisor string) string {
	if supervisor == "" {
		return version
	}
	return version + " (supervisor " + supervisor + ")"
}

func printHosts(a *cli.App, hosts []fleet.HostStatus) {
	w := cli.NewTable(a.Out, "HOST", "STATE", "ROLE", "SINCE", "SLOTS", "GPUS", "MEMORY", "CHECKS", "VERSION", "RUNS")
	now := time.Now()
	for _, h := range hosts {
		w.Row(h.Name, h.State, cmp.Or(h.Role, string(workers.RoleBoth)), cli.Ago(now, h.Since),
			share(h.Used, h.Slots), gpusColumn(h), bytesColumn(h.Memory), checksColumn(h), cli.OrDash(versionColumn(h.Version, h.Supervisor)), cli.OrDash(runsColumn(h.Holds)))
	}
	w.Flush()
	for _, h := range hosts {
		for _, text := range append([]string{noTasks(h)}, stuck(h)...) {
			if text != "" {
				fmt.Fprintln(a.Out, text)
			}
		}
	}
}

// stuck lists the processes on a host that survive SIGKILL.
func stuck(h fleet.HostStatus) (lines []string) {
	for _, o := range h.Holds {
		if o.Stuck != "" {
			lines = append(lines, fmt.Sprintf("%s: %s of run %s survived SIGKILL. Its slot and GPUs stay reserved until it is gone.", h.Name, o.Stuck, o.Run.WorkflowID))
		}
	}
	return lines
}

// checksColumn states how many checks a host has passed, or which fail.
func checksColumn(h fleet.HostStatus) string {
	failing := list.Of(h.Failing, func(f fleet.FailedCheck) string { return f.Check })
	switch {
	case len(failing) > 0:
		return "fails: " + shorten.List(failing, 2)
	case len(h.Checks) > 0:
		return fmt.Sprintf("%d ok", len(h.Checks))
	}
	return "-"
}

// share formats how much of a resource is used.
func share(used, all int) string {
	if all == 0 {
		return fmt.Sprintf("%d of any", used)
	}
	return fmt.Sprintf("%d of %d", used, all)
}

func gpusColumn(h fleet.HostStatus) string {
	if len(h.GPUs) == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d of %d", h.UsedGPUs, len(h.GPUs))
	if model := h.GPUs[0].Model; model != "" {
		text += " " + model
	}
	return text
}

func bytesColumn(n int64) string {
	const gib = 1 << 30
	switch {
	case n == 0:
		return "-"
	case n < 10*gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	default:
		return fmt.Sprintf("%d GiB", n/gib)
	}
}

func runsColumn(holds []fleet.Holding) string {
	const most = 4
	var list []string
	for i, h := range holds {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(holds)-most))
			break
		}
		list = append(list, fmt.Sprintf("%s (%d)", h.Run.WorkflowID, h.Tasks))
	}
	return strings.Join(list, ", ")
}
