package devserver

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// webUI is Temporal's Web UI on a separate port.
type webUI struct {
	server *http.Server
	url    string
}

// startUI serves the Web UI of a frontend on the port. The library's own server accepts every
// client and exits if it cannot listen.
func startUI(o Options, k key, frontend string, port int) (*webUI, error) {
	l, err := net.Listen("tcp", address(o.IP, port))
	if err != nil {
		return nil, portError("--ui-port", address(o.IP, port), anotherPort, err)
	}
	handler, err := uiHandler(o, k, frontend)
	if err != nil {
		l.Close()
		return nil, err
	}
	g := gate{token: k.token(), port: l.Addr().(*net.TCPAddr).Port}
	u := &webUI{
		server: &http.Server{Handler: g.guard(handler), ReadHeaderTimeout: 10 * time.Second},
		url:    g.link("http://" + l.Addr().String()),
	}
	go func() { _ = u.server.Serve(l) }()
	return u, nil
}

// uiHandler returns the Web UI as its library assembles it.
func uiHandler(o Options, k key, frontend string) (http.Handler, error) {
	cfg := &uiconfig.Config{
		TemporalGRPCAddress: frontend,
		EnableUI:            true,
		DefaultNamespace:    o.Namespace,
		// The Web UI must not look for news or new versions on the Internet.
		DisableNewsFetch: true,
		CORS:             uiconfig.CORS{CookieInsecure: true}, // loopback does not use TLS
	}
	if !k.none() {
		cfg.TLS = uiconfig.TLS{CaFile: k.file, CertFile: k.file, KeyFile: k.file, EnableHostVerification: true, ServerName: keyName}
	}
	provider, err := uiconfig.NewConfigProviderWithRefresh(cfg)
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure(),
		csrf.EnsureTokenCookie(false), middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, false)))
	route.SetHealthRoute(e)
	if err := route.SetAPIRoutes(e, provider, []api.Middleware{headers.WithForwardHeaders([]string{"Caller-Type"})}); err != nil {
		return nil, err
	}
	if err := route.SetUIRoutes(e, "", assets, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return e, nil
}

func (u *webUI) stop() { _ = u.server.Close() }

// runUI serves the Web UI of a server that runs elsewhere.
func runUI(ctx context.Context, o Options, ready func(Ready) error) error {
	k, err := openKey(o.Key)
	if err != nil {
		return err
	}
	u, err := startUI(o, k, o.UIFor, o.UIPort)
	if err != nil {
		return err
	}
	defer u.stop()
	if err := ready(Ready{Address: o.UIFor, UI: u.url, Namespace: o.Namespace}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
