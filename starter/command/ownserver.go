package command

import (
	"context"
	"os"

	"github.com/clusterrun/clusterrun/workers/embedded"
)

// isOwn reports whether an address that the user gave is that of the embedded server. A
// client of it follows the server and has its key, which one of an address has not.
func (a *app) isOwn(ctx context.Context, address string) bool {
	if a.hasOwnKey() && (a.global.server.Address == "" || address == os.Getenv("TEMPORAL_ADDRESS")) {
		return true // of `clusterrun env`: the server may have moved since
	}
	s, err := a.home().Find(ctx)
	return err == nil && s != nil && s.Address == address
}

// hasOwnKey reports whether the environment is that of `clusterrun env`.
func (a *app) hasOwnKey() bool { return os.Getenv(clientCertificate) == a.home().Key() }

// ownServer is [app.ensureOwn] for a command that is about that server alone; what names it.
func (a *app) ownServer(ctx context.Context, what string) (*embedded.Server, error) {
	_, external, err := a.external(ctx)
	if err != nil {
		return nil, err
	}
	if external {
		return nil, usagef("%s is about the embedded server, and another one is named (--address, TEMPORAL_ADDRESS or a profile); leave that out", what)
	}
	return a.ensureOwn(ctx)
}

// ensureOwn returns the embedded server, started where it does not run.
func (a *app) ensureOwn(ctx context.Context) (*embedded.Server, error) {
	done := a.sayIfSlow("starting the embedded Temporal server ...")
	defer done()
	a.sayTemporary()
	up, err := a.home().Ensure(ctx, "")
	if err != nil {
		return nil, a.explain(err)
	}
	return up, nil
}
