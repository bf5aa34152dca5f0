package devserver

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/temporal"
)

const (
	// startBound limits a start on a very busy machine. A start usually takes a tenth of a second.
	startBound = time.Minute

	// stopBound limits how long the services take to stop. The database does not need a clean stop,
	// so nothing is lost by exiting earlier.
	stopBound = time.Second
)

// server is Temporal and its Web UI.
type server struct {
	opts     Options
	db       *database
	ports    ports
	key      key
	temporal temporal.Server
	drain    *drain
	logger   *serverLog
	ui       *webUI // nil when headless

	started  chan struct{} // closed when temporal.Start has returned
	startErr error         // its result
}

// newServer builds the server. When it returns, the server's ports are bound, but not yet served.
func newServer(ctx context.Context, o Options, p ports, k key, db *database, logger *serverLog, u *usage) (*server, error) {
	store := db.config()
	if err := createNamespace(ctx, store, o); err != nil {
		return nil, err
	}
	// Otherwise the system workers would read this whole program to identify it, which takes a core
	// for longer than everything else in a start.
	worker.SetBinaryChecksum(versionLine())

	cfg := serverConfig(o, p, store, k)
	authorizer, err := authorization.GetAuthorizerFromConfig(&cfg.Global.Authorization)
	if err != nil {
		return nil, fmt.Errorf("authorizer: %w", err)
	}
	claims, err := authorization.GetClaimMapperFromConfig(&cfg.Global.Authorization, logger)
	if err != nil {
		return nil, fmt.Errorf("claim mapper: %w", err)
	}
	s := &server{opts: o, db: db, ports: p, key: k, logger: logger, drain: newDrain(), started: make(chan struct{})}
	s.temporal, err = temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(o, p)),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(tuning()),
		temporal.WithClientFactoryProvider(patientClients{client.NewFactoryProvider()}),
		temporal.WithChainedFrontendGrpcInterceptors(u.intercept, s.drain.intercept),
	)
	return s, err
}

// start returns when clients can use the server. Temporal's own Start takes longer, because it
// waits for the system workers, which clients do not need. It continues in the background.
func (s *server) start(ctx context.Context) (err error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	bound := time.AfterFunc(startBound, func() { giveUp(fmt.Errorf("not ready after %s; --log-level info prints more", startBound)) })
	defer bound.Stop()
	s.logger.hush()
	defer s.logger.speak()
	if !s.opts.Headless {
		if s.ui, err = startUI(s.opts, s.key, s.frontend(), s.ports.ui); err != nil {
			close(s.started)
			return err
		}
	}
	go func() {
		defer close(s.started)
		if s.startErr = s.temporal.Start(); s.startErr != nil {
			giveUp(s.startErr)
		}
	}()

	err = awaitReady(ctx, s.frontend(), s.opts.Namespace, s.key.credentials())
	if ctx.Err() != nil {
		return fmt.Errorf("starting the server: %w", context.Cause(ctx))
	}
	return err
}

// wait returns when the context is canceled or if Temporal's own Start fails later.
func (s *server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.started:
	}
	if s.startErr != nil {
		return fmt.Errorf("starting the server: %w", s.startErr)
	}
	<-ctx.Done()
	return nil
}

// ready returns what to announce about the server.
func (s *server) ready(started time.Time) Ready {
	r := Ready{
		PID:       os.Getpid(),
		Address:   s.frontend(),
		Namespace: s.opts.Namespace,
		Database:  s.db.path,
		Server:    headers.ServerVersion,
		Started:   started.UTC(),
	}
	if s.ui != nil {
		r.UI = s.ui.url
	}
	r.here()
	return r
}

func (s *server) frontend() string { return address(s.opts.IP, s.ports.frontend) }

// stop stops what start has started, within stopBound.
func (s *server) stop() {
	s.logger.hush()
	deadline := time.NewTimer(stopBound)
	defer deadline.Stop()
	if s.ui != nil {
		s.ui.stop()
	}
	select {
	case <-s.started: // Stop must not run concurrently with Start
	case <-deadline.C:
		return
	}
	s.drain.begin()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = s.temporal.Stop()
	}()
	select {
	case <-stopped:
	case <-deadline.C:
	}
}
