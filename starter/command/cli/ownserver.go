package cli

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

// isOwn reports whether an address from the user belongs to the embedded server. A client of the
// embedded server uses the server's key and follows it to new addresses. A client for any other
// address does neither.
func (a *App) isOwn(ctx context.Context, address string) bool {
	if a.hasOwnKey() && (a.Global.Server.Address == "" || address == os.Getenv("TEMPORAL_ADDRESS")) {
		return true // set by `clusterrun server env`; the server may have moved since
	}
	s, err := a.Home().Find(ctx)
	return err == nil && s != nil && s.Address == address
}

// hasOwnKey reports whether the environment was set by `clusterrun server env`.
func (a *App) hasOwnKey() bool { return os.Getenv(ClientCertificate) == a.Home().Key() }

// OwnServer returns the embedded server for the command named what, and starts it if necessary. It
// returns an error if the user named another server.
func (a *App) OwnServer(ctx context.Context, what string) (*embedded.Instance, error) {
	_, external, err := a.External(ctx)
	if err != nil {
		return nil, err
	}
	if external {
		return nil, Usagef("%s concerns the embedded server, but another one is configured (--address, TEMPORAL_ADDRESS or a profile); remove that setting", what)
	}
	return a.ensureOwn(ctx)
}

// ensureOwn returns the embedded server, starting it if it is not running.
func (a *App) ensureOwn(ctx context.Context) (*embedded.Instance, error) {
	done := a.SayIfSlow("starting the embedded Temporal server ...")
	defer done()
	a.sayTemporary()
	up, err := a.Home().Ensure(ctx, "")
	if err != nil {
		return nil, a.Explain(err)
	}
	return up, nil
}

// ClientCertificate is the variable that names a client's certificate file.
const ClientCertificate = "TEMPORAL_TLS_CLIENT_CERT_PATH"

// DevLock is the name of the file that a running `clusterrun dev` locks. The file contains its
// pid and, on the next line, the link to its pages if it serves any.
const DevLock = "dev.lock"

// DevPID returns the running `clusterrun dev`'s pid for use in messages.
func DevPID(stateDir string) string {
	text, _ := os.ReadFile(filepath.Join(stateDir, DevLock))
	pid, _, _ := bytes.Cut(text, []byte("\n"))
	return cmp.Or(string(bytes.TrimSpace(pid)), "unknown")
}

// DevLink returns the link to the running `clusterrun dev`'s pages, or "".
func DevLink(stateDir string) string {
	path := filepath.Join(stateDir, DevLock)
	text, _ := os.ReadFile(path)
	if held, err := filelock.IsHeld(path); !held || err != nil {
		return ""
	}
	_, link, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSpace(link))
}
