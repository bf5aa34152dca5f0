package hosts

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func showCommand(a *cli.App) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "show [flags] HOST",
		Short: "Show a host: its resources, runs and checks, and why it gets no tasks",
		Args:  cli.OneArg("HOST"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runShow(cmd.Context(), a, queue, args[0]) },
	}
	cli.QueueFlag(cmd, &queue)
	return cmd
}

// runShow implements [showCommand].
func runShow(ctx context.Context, a *cli.App, queue, name string) error {
	return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
		h, err := f.Host(ctx, name)
		if err != nil {
			return err
		}
		h.Store = nil // its token is a secret
		return a.Print(h, func() { printHost(a, h) })
	})
}

func printHost(a *cli.App, h *starter.HostDetails) {
	now := time.Now()
	w := cli.NewTable(a.Out)
	w.Row("Host", h.Name)
	w.Row("State", fmt.Sprintf("%s for %s", stateText(h.HostStatus), cli.Ago(now, h.Since)))
	if h.Address != "" && h.Address != h.Name {
		w.Row("Address", h.Address)
	}
	w.Row("Version", cli.OrDash(versionColumn(h.Version, h.Supervisor)))
	w.Row("Role", cmp.Or(h.Role, string(workers.RoleBoth)))
	w.Row("Slots", share(h.Used, h.Slots))
	w.Row("CPUs", cli.OrDash(strings.TrimPrefix(fmt.Sprint(h.CPUs), "0")))
	w.Row("Memory", bytesColumn(h.Memory))
	w.Row("GPUs", gpusColumn(h.HostStatus))
	w.Flush()
	for _, text := range append([]string{noTasks(h.HostStatus)}, stuck(h.HostStatus)...) {
		if text != "" {
			fmt.Fprintf(a.Out, "\n%s\n", text)
		}
	}
	if len(h.Checks) > 0 {
		w.Row("\nCHECK", "RESULT", "AGE", "TOOK")
		for _, name := range h.Checks {
			result, age, took := resultOf(h, name, now)
			w.Row(name, result, age, took)
		}
		w.Flush()
	}
	if len(h.Holds) > 0 {
		w.Row("\nRUN", "TASKS", "GPUS")
		for _, o := range h.Holds {
			w.Row(o.Run.WorkflowID, strconv.Itoa(o.Tasks), cli.OrDash(strings.Join(o.Devices, ",")))
		}
		w.Flush()
	}
}

// resultOf returns a check's columns.
func resultOf(h *starter.HostDetails, name string, now time.Time) (result, age, took string) {
	for _, r := range h.Results {
		if r.Check == name {
			result = "ok"
			if r.Failed != "" {
				result = "fails: " + r.Failed
			}
			return result, cli.Ago(now, r.At), cli.Roughly(time.Duration(r.Seconds * float64(time.Second)))
		}
	}
	for _, f := range h.Failing {
		if f.Check == name {
			return "fails: " + f.Reason, "-", "-"
		}
	}
	return "ok", "-", "-"
}

// stateText returns a host's state and, if it was not cordoned by a user, what cordoned it.
func stateText(h fleet.HostStatus) string {
	if h.State == fleet.HostCordoned && h.CordonedBy == fleet.CordonedByCheck {
		return "cordoned by a check"
	}
	return string(h.State)
}

// noTasks explains why a host gets no new tasks, and what would change that. It is empty if no
// reason is known.
func noTasks(h fleet.HostStatus) string {
	if h.Reason == "" && h.Deadline.IsZero() {
		return ""
	}
	line := fmt.Sprintf("%s is %s", h.Name, h.State)
	if h.CordonedBy == fleet.CordonedByCheck {
		return fmt.Sprintf("%s is %s by its %s. It gets tasks again once the check succeeds.", h.Name, fleet.HostCordoned, h.Reason)
	}
	if h.Reason != "" {
		line += ": " + h.Reason
	}
	if !h.Deadline.IsZero() {
		line += fmt.Sprintf(" (until %s)", h.Deadline.Local().Format(cli.LocalTime))
	}
	return line
}
