package cli

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/workers/embedded"
)

// isOwn reports whether an address that the user gave is that of the embedded server. A
// client of it follows the server and has its key, which one of an address has not.
func (a *App) isOwn(ctx context.Context, address string) bool {
	if a.hasOwnKey() && (a.Global.Server.Address == "" || address == os.Getenv("TEMPORAL_ADDRESS")) {
		return true // of `clusterrun env`: the server may have moved since
	}
	s, err := a.Home().Find(ctx)
	return err == nil && s != nil && s.Address == address
}

// hasOwnKey reports whether the environment is that of `clusterrun env`.
func (a *App) hasOwnKey() bool { return os.Getenv(ClientCertificate) == a.Home().Key() }

// OwnServer is [App.EnsureOwn] for a command that is about that server alone; what names it.
func (a *App) OwnServer(ctx context.Context, what string) (*embedded.Server, error) {
	_, external, err := a.External(ctx)
	if err != nil {
		return nil, err
	}
	if external {
		return nil, Usagef("%s is about the embedded server, and another one is named (--address, TEMPORAL_ADDRESS or a profile); leave that out", what)
	}
	return a.ensureOwn(ctx)
}

// ensureOwn returns the embedded server, started where it does not run.
func (a *App) ensureOwn(ctx context.Context) (*embedded.Server, error) {
	done := a.SayIfSlow("starting the embedded Temporal server ...")
	defer done()
	a.sayTemporary()
	up, err := a.Home().Ensure(ctx, "")
	if err != nil {
		return nil, a.Explain(err)
	}
	return up, nil
}

// ClientCertificate is the variable that says with which certificate a client comes.
const ClientCertificate = "TEMPORAL_TLS_CLIENT_CERT_PATH"

// DevLock is the name of the file that a dev holds, with its pid.
const DevLock = "dev.lock"

// DevPID returns the pid of the dev that runs, for people.
func DevPID(stateDir string) string {
	pid, _ := os.ReadFile(filepath.Join(stateDir, DevLock))
	return cmp.Or(string(bytes.TrimSpace(pid)), "unknown")
}
