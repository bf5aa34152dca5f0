package hosts

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func Host(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host COMMAND",
		Short: "Show the hosts of a queue, and take them out of service",
	}
	cmd.AddCommand(listCommand(a), showCommand(a), cordonCommand(a, false), cordonCommand(a, true), uncordonCommand(a))
	return cli.AsGroup(cmd)
}

func cordonCommand(a *cli.App, drain bool) *cobra.Command {
	var queue, reason string
	var deadline time.Duration
	cmd := &cobra.Command{
		Use:   "cordon [flags] HOST",
		Short: "Cordon a host, so that it gets no new tasks",
		Args:  cli.OneArg("HOST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := fleet.Cordoned{Name: args[0], Reason: reason, Drain: drain}
			if deadline < 0 {
				return cli.Usagef("--deadline %s: use a time from now, such as 30m", deadline)
			}
			if deadline > 0 {
				q.Deadline = time.Now().Add(deadline).Round(time.Second)
			}
			return cli.OnFleet(cmd.Context(), a, queue, func(f *starter.Fleet) error {
				if err := f.Cordon(cmd.Context(), q); err != nil {
					return err
				}
				text := fmt.Sprintf("host %s gets no new tasks", args[0])
				if drain {
					text = fmt.Sprintf("host %s is draining; `clusterrun host list` shows what is left on it", args[0])
					if deadline > 0 {
						text = fmt.Sprintf("host %s is draining; its runs will be stopped at %s", args[0], q.Deadline.Local().Format(time.DateTime))
					}
				}
				return printService(a, serviceOfHost{Host: args[0], Cordoned: true, Draining: drain}, text)
			})
		},
	}
	if drain {
		cmd.Use, cmd.Short = "drain [flags] HOST", "Cordon a host, and move its runs elsewhere"
		cmd.Flags().DurationVar(&deadline, "deadline", 0, "`TIME` from now after which the host's runs, which are notified, are stopped")
	}
	cli.QueueFlag(cmd, &queue)
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, as information for people")
	return cmd
}

// serviceOfHost reports whether a host gets tasks after a request to change that. The host itself
// may not answer.
type serviceOfHost struct {
	Host     string `json:"host"`
	Cordoned bool   `json:"cordoned"`
	Draining bool   `json:"draining"`
}

// printService prints h as JSON if --json is set, and otherwise prints the text.
func printService(a *cli.App, h serviceOfHost, text string) error {
	return a.Print(h, func() { a.Say("%s", text) })
}

func uncordonCommand(a *cli.App) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "uncordon [flags] HOST",
		Short: "Uncordon a host, so that it gets tasks again",
		Args:  cli.OneArg("HOST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.OnFleet(cmd.Context(), a, queue, func(f *starter.Fleet) error {
				if err := f.Uncordon(cmd.Context(), args[0]); err != nil {
					return err
				}
				return printService(a, serviceOfHost{Host: args[0]}, fmt.Sprintf("host %s gets tasks again", args[0]))
			})
		},
	}
	cli.QueueFlag(cmd, &queue)
	return cmd
}
