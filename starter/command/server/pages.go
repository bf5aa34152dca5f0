package server

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/web"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

func Pages(a *cli.App) *cobra.Command {
	var o pagesOptions
	cmd := &cobra.Command{
		Use:   "ui [flags]",
		Short: "Show runs, hosts and output in a browser, and act on runs",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.chosen = cmd.Flags().Changed("port")
			if err := o.check(); err != nil {
				return err
			}
			return servePages(cmd.Context(), a, &o)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.port, "port", 8233, "`PORT` of the pages; 0 for any free one")
	fs.BoolVar(&o.readOnly, "read-only", false, "disable everything that changes something")
	fs.StringVar(&o.temporalUI, "temporal-ui", "", "`URL` of the Web UI of a server other than the embedded one, for links")
	cli.QueueFlag(cmd, &o.queue)
	return cmd
}

// pagesOptions holds the flags of [Pages].
type pagesOptions struct {
	port       int
	chosen     bool // whether the port was given
	readOnly   bool
	temporalUI string
	queue      string
}

func (o *pagesOptions) check() error {
	if o.port < 0 || o.port > 65535 {
		return cli.Usagef("--port %d is not a port; use 1 to 65535, or 0 for any free one", o.port)
	}
	if u, err := url.Parse(o.temporalUI); err != nil || o.temporalUI != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return cli.Usagef("--temporal-ui %q: use a URL, such as https://temporal.example.org", o.temporalUI)
	}
	return nil
}

// servePages implements [Pages].
func servePages(ctx context.Context, a *cli.App, o *pagesOptions) error {
	ctx, done := cli.EndedBy(ctx)
	defer done()
	_, external, err := a.External(ctx)
	if err != nil {
		return err
	}
	if !external && !o.readOnly && !o.chosen {
		if link := cli.DevLink(a.Global.StateDir); link != "" {
			return showLink(a, link)
		}
	}
	if !external && o.temporalUI != "" {
		return cli.Usagef("--temporal-ui: the pages already link to the embedded server's Web UI; omit the flag, or name another server")
	}
	pages, err := web.Listen("port", o.port)
	if err != nil {
		return err
	}
	defer pages.Close()
	options := web.Options{App: a, Queue: o.queue, ReadOnly: o.readOnly}
	ended := make(<-chan error)   // never receives if Temporal's Web UI is external
	if !external && !o.readOnly { // Temporal's Web UI can change everything
		ui, err := startTemporalUI(ctx, a, o.port)
		if err != nil {
			return err
		}
		defer func() { _ = ui.Stop(context.WithoutCancel(ctx)) }()
		o.temporalUI, ended, options.Token = ui.UI, ui.Exited(), tokenOf(ui.UI)
	}
	if o.temporalUI != "" {
		if err := pages.LinkTemporal(o.temporalUI); err != nil {
			return err
		}
	}
	c, server, err := a.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	options.Client = c
	if options.Namespace, err = cli.NamespaceOf(server); err != nil {
		return err
	}
	pages.Serve(options)
	if err := showLink(a, pages.Link()); err != nil {
		return err
	}
	a.Say("serving the pages until Ctrl-C")
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("the Web UI of Temporal exited unexpectedly: %w", err)
	}
}

// startTemporalUI starts Temporal's Web UI for the embedded server.
func startTemporalUI(ctx context.Context, a *cli.App, pages int) (*embedded.Foreground, error) {
	s, err := a.OwnServer(ctx, "ui")
	if err != nil {
		return nil, err
	}
	return a.Home().StartUI(ctx, s, temporalPort(pages))
}

// temporalPort returns a port for Temporal's Web UI: the one after that of the pages, so that it
// can be forwarded and named in --origin. If that port is in use, or if the pages use any port, it
// returns 0, which means any port.
func temporalPort(pages int) int {
	if pages == 0 {
		return 0
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(pages+1)))
	if err != nil {
		return 0
	}
	l.Close()
	return pages + 1
}

// tokenOf returns the token in a link.
func tokenOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Query().Get("token")
}

// servePages serves dev's pages, and records their link in its lock file.
func (d *dev) servePages(lock *os.File, up *embedded.Instance) error {
	if d.pages == nil {
		return nil
	}
	d.pages.Serve(web.Options{App: d.App, Client: d.client, Namespace: up.Namespace, Queue: d.options.Queue, Token: tokenOf(up.UI)})
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), d.pages.Link()), 0); err != nil {
		return fmt.Errorf("store the link of the pages: %w", err)
	}
	return nil
}

// showLink prints the link to the pages.
func showLink(a *cli.App, link string) error {
	return a.PrintLine(map[string]string{"ui": link}, "%s", link)
}
