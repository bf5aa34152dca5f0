package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
)

func envCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print variables that let the temporal CLI use the embedded server",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runEnv(cmd.Context(), a) },
	}
}

// runEnv implements [envCommand].
func runEnv(ctx context.Context, a *cli.App) error {
	s, err := a.OwnServer(ctx, "server env")
	if err != nil {
		return err
	}
	key := a.Home().Key()
	variables := []string{
		"TEMPORAL_ADDRESS", s.Address, "TEMPORAL_NAMESPACE", s.Namespace,
		cli.ClientCertificate, key, "TEMPORAL_TLS_CLIENT_KEY_PATH", key, "TEMPORAL_TLS_SERVER_CA_CERT_PATH", key,
	}
	if a.Global.JSON {
		byName := map[string]string{}
		for pair := range slices.Chunk(variables, 2) {
			byName[pair[0]] = pair[1]
		}
		return a.PrintJSON(byName)
	}
	return printExports(a, variables)
}

// printExports prints the names and values of variables for a shell.
func printExports(a *cli.App, variables []string) error {
	for pair := range slices.Chunk(variables, 2) {
		if _, err := fmt.Fprintf(a.Out, "export %s=%s\n", pair[0], remotehosts.Quote(pair[1])); err != nil {
			return err
		}
	}
	return nil
}
