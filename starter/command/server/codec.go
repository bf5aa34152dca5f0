package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func codecCommand(a *cli.App) *cobra.Command {
	var listen string
	var origins []string
	cmd := &cobra.Command{
		Use:   "codec [flags]",
		Short: "Decrypt data that --codec-keys encrypts, for the temporal CLI and a Web UI",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Global.Server.CodecKeys == "" {
				return cli.Usagef("there are no keys; name their file with --codec-keys or CLUSTERRUN_CODEC_KEYS")
			}
			if host, _, err := net.SplitHostPort(listen); err != nil || !spec.IsLoopback(host) {
				return cli.Usagef("--listen %q: use an address of this machine, such as 127.0.0.1:8081; for other machines, put a TLS server in front of it", listen)
			}
			for _, o := range origins {
				if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o {
					return cli.Usagef("--origin %q: use the scheme, host and port of the Web UI, such as http://127.0.0.1:8080", o)
				}
			}
			ctx, done := cli.EndedBy(cmd.Context())
			defer done()
			s, err := serveCodec(a, listen, origins)
			if err != nil {
				return err
			}
			defer func() { _ = s.Shutdown(context.Background()) }()
			if err := printCodec(a, s); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8081", "`ADDRESS` on this machine, as HOST:PORT; port 0 for any free one")
	cmd.Flags().StringArrayVar(&origins, "origin", nil, "`URL` of a Web UI that may use it, such as http://127.0.0.1:8080; may be repeated")
	return cmd
}

// codecServer is a remote codec on a local port.
type codecServer struct {
	http.Server
	url, token string
}

// serveCodec serves the command line's keys, with a new token.
func serveCodec(a *cli.App, listen string, origins []string) (*codecServer, error) {
	keys, err := codec.Open(a.Global.Server.CodecKeys)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	s := &codecServer{url: "http://" + l.Addr().String(), token: rand.Text()}
	s.Handler = &codec.Server{Keys: keys, Token: s.token, Origins: origins}
	s.ReadHeaderTimeout = 10 * time.Second
	go func() { _ = s.Serve(l) }()
	return s, nil
}

func printCodec(a *cli.App, s *codecServer) error {
	link := s.url + "/?token=" + s.token
	if a.Global.JSON {
		return a.PrintJSON(map[string]string{"endpoint": s.url, "auth": "Bearer " + s.token, "link": link})
	}
	if err := printExports(a, []string{"TEMPORAL_CODEC_ENDPOINT", s.url, "TEMPORAL_CODEC_AUTH", "Bearer " + s.token}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "# in a browser: %s\n", link)
	return err
}
