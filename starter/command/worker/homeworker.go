package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/homeworker"
)

// HomeWorker returns the command that runs a home's host worker.
func HomeWorker(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "home-worker",
		Short:  "A home's host worker; started by run",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			text, ok := os.LookupEnv(homeworker.HomeVar)
			if !ok {
				return cli.Usagef("home-worker is started by clusterrun itself; use `clusterrun worker`")
			}
			var h homeworker.Home
			if err := json.Unmarshal([]byte(text), &h); err != nil {
				return fmt.Errorf("%s: %w", homeworker.HomeVar, err)
			}
			log, err := zap.NewProduction()
			if err != nil {
				return err
			}
			return homeworker.Run(ctx, h, log, func(text string) {
				_, _ = os.Stdout.WriteString(text)
				null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
				if err == nil {
					_ = syscall.Dup3(int(null.Fd()), 1, 0)
					null.Close()
				}
			})
		},
	}
}
