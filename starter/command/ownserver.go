package command

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/workers/embedded"
)

// clientCertificate is the variable that says with which certificate a client comes.
const clientCertificate = "TEMPORAL_TLS_CLIENT_CERT_PATH"

// isOwn reports whether an address that the user gave is that of the embedded server. A
// client of it follows the server and has its key, which one of an address has not.
func (a *app) isOwn(ctx context.Context, address string) bool {
	if os.Getenv(clientCertificate) == a.home().Key() {
		return true // of `clusterrun env`: the server may have moved since
	}
	s, err := a.home().Find(ctx)
	return err == nil && s != nil && s.Address == address
}

func (a *app) envCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print the environment by which the temporal CLI uses the embedded server",
		Long: `Prints shell commands that set the variables which the temporal CLI, and programs
with Temporal's SDKs, need to use this user's embedded server: its address, and the
certificate without which it takes nobody. The server is started where it does not
run. It leaves when nobody has used it for ten minutes; ` + "`clusterrun dev`" + ` keeps it.

Whoever can read the file of the certificate can run commands as you.

Exit codes:
  0    printed
  2    another server is named: this is about the embedded one
  125  the server could not be started`,
		Example: "  eval \"$(clusterrun env)\"\n  temporal workflow list\n\n  clusterrun env --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.ownServer(cmd.Context(), "env")
			if err != nil {
				return err
			}
			key := a.home().Key()
			variables := []string{
				"TEMPORAL_ADDRESS", s.Address, "TEMPORAL_NAMESPACE", s.Namespace,
				clientCertificate, key, "TEMPORAL_TLS_CLIENT_KEY_PATH", key, "TEMPORAL_TLS_SERVER_CA_CERT_PATH", key,
			}
			if a.global.json {
				byName := map[string]string{}
				for pair := range slices.Chunk(variables, 2) {
					byName[pair[0]] = pair[1]
				}
				return a.printJSON(byName)
			}
			for pair := range slices.Chunk(variables, 2) {
				if _, err := fmt.Fprintf(a.out, "export %s=%s\n", pair[0], quoted(pair[1])); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// quoted returns a text as a word of the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ownServer returns the embedded server, started where it does not run. What names the
// command.
func (a *app) ownServer(ctx context.Context, what string) (*embedded.Server, error) {
	s, err := a.bringUp(ctx)
	if err != nil {
		return nil, err
	}
	if !s.Embedded {
		return nil, usagef("%s is about the embedded server, and another one is named (--address, TEMPORAL_ADDRESS or a profile); leave that out", what)
	}
	return a.home().Ensure(ctx, "")
}

func (a *app) uiCommand() *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "ui [flags]",
		Short: "Show the Web UI of the embedded server",
		Long: `Serves Temporal's Web UI for this user's embedded server until Ctrl-C, and prints the
link that lets a browser in; later the browser has a cookie. Where ` + "`clusterrun dev`" + `
serves the Web UI already, its link is printed and that is all. The runs are those
of the server that serves them in the background; nothing is stopped or moved.

From another machine: ssh -L 8233:127.0.0.1:8233 HOST, and the same link.

Exit codes:
  0    stopped as asked, or the link of dev was printed
  2    another server is named, or no port
  125  the port is taken, or the Web UI failed`,
		Example: "  clusterrun ui\n  clusterrun ui --port 0   # any that is free",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return usagef("--port %d is not a port; give 1 to 65535, or 0 for any free one", port)
			}
			return a.serveUI(cmd.Context(), port)
		},
	}
	cmd.Flags().IntVar(&port, "port", 8233, "`PORT` of the Web UI")
	return cmd
}

func (a *app) serveUI(ctx context.Context, port int) error {
	ctx, done := endedBy(ctx)
	defer done()
	s, err := a.ownServer(ctx, "ui")
	if err != nil {
		return err
	}
	if s.UI != "" {
		return a.printUI(s.UI)
	}
	a.keep(ctx, a.embedded(s))
	ui, err := a.home().StartUI(ctx, s, port)
	if err != nil {
		return err
	}
	defer ui.Stop()
	if err := a.printUI(ui.URL); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ui.Exited():
		return fmt.Errorf("the Web UI ended by itself: %w", err)
	}
}

func (a *app) printUI(url string) error {
	if a.global.json {
		return a.printJSON(map[string]string{"ui": url})
	}
	_, err := fmt.Fprintln(a.out, url)
	return err
}
