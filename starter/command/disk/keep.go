package disk

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Keep(a *cli.App) *cobra.Command {
	var (
		off    bool
		logDir string
	)
	cmd := &cobra.Command{
		Use:   "keep [flags] RUN...",
		Short: "Keep the logs of runs, however old",
		Long: `Keeps the logs of runs on this host: neither prune nor a host worker removes them, or makes
the embedded server forget the runs. The file RUN/EXECUTION.keep beside the logs marks
them. The server still forgets a run when the retention of its namespace is over.

` + cli.ExitCodesOfRequests,
		Example: "  clusterrun keep iris-x2k4\n  clusterrun keep --off iris-x2k4",
		Args:    cli.SomeArgs(1, "RUN"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := openPast(a, logDir)
			if err != nil {
				return err
			}
			if p != nil {
				defer p.Close()
			}
			did := "kept"
			if off {
				did = "no longer kept"
			}
			kept := []string{}
			for _, id := range args {
				n := 0
				if p != nil {
					entries, err := p.EntriesOf(id)
					if err != nil {
						return err
					}
					for _, e := range entries {
						if err := p.Keep(e, !off); err != nil {
							return err
						}
					}
					n = len(entries)
				}
				if n == 0 {
					return fmt.Errorf("run %s has no logs here; give the whole ID, and --log-dir if its logs are elsewhere", id)
				}
				kept = append(kept, id)
				if !a.Global.JSON {
					fmt.Fprintf(a.Out, "%s: %s\n", did, id)
				}
			}
			if a.Global.JSON {
				return a.PrintJSON(map[string]any{"runs": kept, "kept": !off})
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "no longer keep them")
	logDirFlag(a, cmd, &logDir)
	return cmd
}
