package server

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func uiCommand(a *cli.App) *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "ui [flags]",
		Short: "Serve Temporal's Web UI of the embedded server",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return cli.Usagef("--port %d is not a port; give 1 to 65535, or 0 for any free one", port)
			}
			return serveUI(cmd.Context(), a, port)
		},
	}
	cmd.Flags().IntVar(&port, "port", 8233, "`PORT` of the Web UI")
	return cmd
}

func serveUI(ctx context.Context, a *cli.App, port int) error {
	ctx, done := cli.EndedBy(ctx)
	defer done()
	s, err := a.OwnServer(ctx, "server ui")
	if err != nil {
		return err
	}
	if link := cli.DevLink(a.Global.StateDir); link != "" {
		return printUI(a, temporalLink(link))
	}
	cli.Keep(ctx, a, a.Embedded(s))
	decodes, err := serveUICodec(a)
	if err != nil {
		return err
	}
	defer decodes.close()
	home := a.Home()
	home.Env = decodes.environment()
	ui, err := home.StartUI(ctx, s, port)
	if err != nil {
		return err
	}
	defer func() { _ = ui.Stop(context.WithoutCancel(ctx)) }()
	if err := printUI(a, ui.UI); err != nil {
		return err
	}
	a.Say("serving the Web UI until Ctrl-C")
	select {
	case <-ctx.Done():
		return nil
	case err := <-ui.Exited():
		return fmt.Errorf("the Web UI ended by itself: %w", err)
	}
}

func printUI(a *cli.App, url string) error {
	return a.PrintLine(map[string]string{"ui": url}, "%v", url)
}
