package disk

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Keep(a *cli.App) *cobra.Command {
	var o keepOptions
	cmd := &cobra.Command{
		Use:   "keep [flags] RUN...",
		Short: "Keep the logs of runs for good",
		Args:  cli.SomeArgs(1, "RUN"),
		RunE:  func(_ *cobra.Command, args []string) error { return runKeep(a, args, &o) },
	}
	cmd.Flags().BoolVar(&o.off, "off", false, "no longer keep them")
	logDirFlag(cmd, &o.logDir)
	return cmd
}

// keepOptions are the flags of [Keep].
type keepOptions struct {
	off    bool
	logDir string
}

// runKeep implements [Keep].
func runKeep(a *cli.App, args []string, o *keepOptions) error {
	p, err := openPast(a, o.logDir)
	if err != nil {
		return err
	}
	if p != nil {
		defer p.Close()
	}
	did := "kept"
	if o.off {
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
				if err := p.Keep(e, !o.off); err != nil {
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
		return a.PrintJSON(map[string]any{"runs": kept, "kept": !o.off})
	}
	return nil
}
