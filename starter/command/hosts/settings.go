package hosts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func settingsCommand(a *cli.App) *cobra.Command {
	var queue, preempt, sick string
	var longest time.Duration
	cmd := &cobra.Command{
		Use:   "settings [flags]",
		Short: "Show or change the rules of a queue",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed
			if given("preempt") && !slices.Contains(fleet.Preemptings, preempt) {
				return cli.Usagef("--preempt %q: give one of %s", preempt, strings.Join(fleet.Preemptings, ", "))
			}
			if given("sick-hosts") && !slices.Contains(fleet.AllSickHosts, sick) {
				return cli.Usagef("--sick-hosts %q: give one of %s", sick, strings.Join(fleet.AllSickHosts, ", "))
			}
			if longest < 0 {
				return cli.Usagef("--longest-notice %s: give a time such as 2m, or 0 for no limit", longest)
			}
			ctx := cmd.Context()
			return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
				s, err := f.Settings(ctx)
				if err != nil {
					return err
				}
				if given("preempt") {
					s.Preempt = fleet.Preempting(preempt)
				}
				if given("longest-notice") {
					s.LongestNotice = longest
				}
				if given("sick-hosts") {
					s.SickHosts = fleet.SickHosts(sick)
				}
				if given("preempt") || given("longest-notice") || given("sick-hosts") {
					if err := f.Set(ctx, s); err != nil {
						return err
					}
				}
				return printSettings(a, s)
			})
		},
	}
	cli.QueueFlag(cmd, &queue)
	cmd.Flags().StringVar(&preempt, "preempt", "", "which runs a pending run may preempt: `never|lower-priority`")
	cmd.Flags().DurationVar(&longest, "longest-notice", 0, "longest `TIME` from the notice to the stop of a preempted run; 0 for the time of its spec")
	cmd.Flags().StringVar(&sick, "sick-hosts", "", "what happens to a host on which runs fail, and not on others: `report|cordon`")
	return cmd
}

// settings is the JSON form of a queue's rules.
type settings struct {
	Preempt       fleet.Preempting `json:"preempt"`
	LongestNotice string           `json:"longest_notice,omitempty"`
	SickHosts     fleet.SickHosts  `json:"sick_hosts"`
}

func printSettings(a *cli.App, s fleet.Settings) error {
	shown := settings{Preempt: s.Preempt, SickHosts: s.SickHosts}
	if s.LongestNotice > 0 {
		shown.LongestNotice = s.LongestNotice.String()
	}
	text := fmt.Sprintf("preempt: %s\nsick hosts: %s", s.Preempt, s.SickHosts)
	if shown.LongestNotice != "" {
		text += "\nlongest notice: " + shown.LongestNotice
	}
	return a.PrintLine(shown, "%s", text)
}
