package hosts

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func settingsCommand(a *cli.App) *cobra.Command {
	var queue, sick string
	cmd := &cobra.Command{
		Use:   "settings [flags]",
		Short: "Show or change the rules of a queue",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed
			if given("sick-hosts") && !slices.Contains(fleet.AllSickHosts, sick) {
				return cli.Usagef("--sick-hosts %q: give one of %s", sick, strings.Join(fleet.AllSickHosts, ", "))
			}
			ctx := cmd.Context()
			return cli.OnFleet(ctx, a, queue, func(f *starter.Fleet) error {
				s, err := f.Settings(ctx)
				if err != nil {
					return err
				}
				if given("sick-hosts") {
					s.SickHosts = fleet.SickHosts(sick)
				}
				if given("sick-hosts") {
					if err := f.Set(ctx, s); err != nil {
						return err
					}
				}
				return printSettings(a, s)
			})
		},
	}
	cli.QueueFlag(cmd, &queue)
	cmd.Flags().StringVar(&sick, "sick-hosts", "", "what happens to a host on which runs fail, and not on others: `report|cordon`")
	return cmd
}

// settings is the JSON form of a queue's rules.
type settings struct {
	SickHosts fleet.SickHosts `json:"sick_hosts"`
}

func printSettings(a *cli.App, s fleet.Settings) error {
	return a.PrintLine(settings{s.SickHosts}, "sick hosts: %s", s.SickHosts)
}
