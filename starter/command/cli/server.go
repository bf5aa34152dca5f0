package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/remedy"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Target is the Temporal server that a command uses.
type Target struct {
	connect.Options
	// Embedded reports whether it is this user's embedded server.
	Embedded bool
}

const (
	DialTimeout = 5 * time.Second
	// slowStart is how long a command waits before it reports what it is waiting for.
	slowStart = 150 * time.Millisecond
	// BringUpBound limits the attempts to start an embedded server that keeps exiting.
	BringUpBound = 20 * time.Second
)

// Home returns the directory of this user's embedded server.
func (a *App) Home() embedded.Home { return embedded.Home{Dir: a.ServerDir()} }

// External returns the server that the user named. ok is false if the user named none.
//
// External does not look for a server on Temporal's usual port. On a shared machine, such a server
// may belong to any user, and a server's owner controls what its runs execute.
func (a *App) External(ctx context.Context) (s Target, ok bool, err error) {
	s.Options = a.Global.Server
	// Every command that starts something calls External first; commands that programs call
	// within a run do not.
	if err := cmp.Or(a.noHome, a.CheckUTF8()); err != nil {
		return s, false, err
	}
	c, err := s.Client()
	if err != nil {
		return s, false, Usagef("%s", err)
	}
	if c.HostPort != "" {
		if err := checkAddress(c.HostPort); err != nil {
			return s, false, err
		}
		if a.isOwn(ctx, c.HostPort) {
			return Target{Embedded: true}, false, nil
		}
		if a.hasOwnKey() {
			return s, false, Usagef("--address %s is not the embedded server, but the environment has that server's key (from `clusterrun server env`); unset %s, TEMPORAL_TLS_CLIENT_KEY_PATH and TEMPORAL_TLS_SERVER_CA_CERT_PATH", c.HostPort, ClientCertificate)
		}
		return s, true, nil
	}
	if names := serverSettings(s.Options); len(names) > 0 {
		return s, false, Usagef("%s is set without a server address; add --address or TEMPORAL_ADDRESS, or omit it to use the embedded server", names[0])
	}
	if c.Namespace != "" && c.Namespace != client.DefaultNamespace {
		return s, false, Usagef(`namespace %q is set without a server address, and the embedded server only has the namespace "default"; add --address or TEMPORAL_ADDRESS, or omit the namespace`, c.Namespace)
	}
	return Target{Embedded: true}, false, nil
}

// checkAddress returns an error if address cannot be a server's address.
func checkAddress(address string) error {
	_, rest, hasScheme := strings.Cut(address, ":///") // gRPC's form
	if !hasScheme {
		rest = address
	}
	_, port, err := net.SplitHostPort(rest)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || n == 0 {
		return remedy.With(Usagef("%q is not a Temporal server address", address), "use HOST:PORT, such as localhost:7233, with --address, TEMPORAL_ADDRESS or in the profile")
	}
	return nil
}

// serverSettings returns the names of settings that do not apply to the embedded server.
func serverSettings(o connect.Options) []string {
	var names []string
	if o.Profile != "" {
		names = append(names, "--profile")
	}
	if o.ConfigFile != "" {
		names = append(names, "--config-file")
	}
	if o.APIKeyFile != "" {
		names = append(names, "--api-key-file")
	}
	for _, v := range []string{"TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE", "TEMPORAL_API_KEY", "TEMPORAL_TLS",
		"TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_CERT_DATA", "TEMPORAL_TLS_SERVER_CA_CERT_PATH", "TEMPORAL_TLS_SERVER_CA_CERT_DATA"} {
		if os.Getenv(v) != "" {
			names = append(names, v)
		}
	}
	return names
}

// BringUp returns the server to use. If that is the embedded server, BringUp starts it if
// needed.
func (a *App) BringUp(ctx context.Context) (Target, error) {
	if err := fault.Programs().Room(); err != nil {
		return Target{}, err
	}
	s, external, err := a.External(ctx)
	if err != nil || external {
		return s, err
	}
	up, err := a.ensureOwn(ctx)
	if err != nil {
		return s, err
	}
	return a.Embedded(up), nil
}

// Embedded returns this user's embedded server.
func (a *App) Embedded(up *embedded.Instance) Target {
	return Target{Embedded: true, Options: connect.Options{
		Address: up.Address, Namespace: up.Namespace, Embedded: a.ServerDir(), CodecKeys: a.Global.Server.CodecKeys,
	}}
}

// keepFrom is how long a command must last before it keeps the embedded server running, which
// most commands do not need.
const keepFrom = time.Second

// Keep restarts the embedded server whenever it exits, until ctx is done. It returns
// immediately.
func Keep(ctx context.Context, a *App, s Target) {
	if !s.Embedded {
		return
	}
	time.AfterFunc(keepFrom, func() {
		a.Home().Keep(ctx, func(err error) {
			if ctx.Err() == nil {
				a.Say("%s; trying again", a.Explain(err))
			}
		})
	})
}

// If done is not called within [slowStart], SayIfSlow prints what, but only on a terminal.
func (a *App) SayIfSlow(what string) (done func()) {
	if !IsTerminal(a.Err) {
		return func() {}
	}
	t := time.AfterFunc(slowStart, func() { a.Say("%s", a.Color.Dim(what)) })
	return func() { t.Stop() }
}

// Dial connects to the server. If that is the embedded server, Dial starts it if needed.
func (a *App) Dial(ctx context.Context) (client.Client, Target, error) {
	deadline := time.Now().Add(BringUpBound)
	for {
		s, err := a.BringUp(ctx)
		if err != nil {
			return nil, s, err
		}
		a.embedded = s.Embedded
		began := time.Now()
		c, err := a.DialOnce(ctx, s)
		if err == nil {
			Keep(ctx, a, s)
		}
		if err == nil || !s.MayHaveExited(began) || ctx.Err() != nil || time.Now().After(deadline) {
			return c, s, err
		}
	}
}

// MayHaveExited reports whether an attempt to reach the server may have failed because the server
// is the embedded one and exited after BringUp found it. If the server is frozen instead, the
// attempt uses up its time.
func (s Target) MayHaveExited(began time.Time) bool {
	return s.Embedded && time.Since(began) < DialTimeout
}

func (a *App) DialOnce(ctx context.Context, s Target) (client.Client, error) {
	return connect.Dial(ctx, s.Options, a.Logger(), DialTimeout)
}

// ErrNoServer reports that no run has ever been started here, so there is no server.
var ErrNoServer = errors.New("there are no runs: the embedded server has never been started here; name another server with --address or TEMPORAL_ADDRESS")

// DialExisting is like [App.Dial] for commands that do not start a run. It returns [ErrNoServer]
// if the embedded server does not have a database yet. It first ends abandoned runs, and revives
// the host worker of submitted runs, so that no command shows a dead run as open or waits for it.
func (a *App) DialExisting(ctx context.Context) (client.Client, Target, error) {
	s, external, err := a.External(ctx)
	if err != nil {
		return nil, s, err
	}
	if !external {
		if _, err := os.Stat(a.Home().Database()); errors.Is(err, fs.ErrNotExist) {
			return nil, s, ErrNoServer
		}
	}
	c, s, err := a.Dial(ctx)
	if err == nil {
		if s.Embedded && a.Revive != nil {
			a.Revive(ctx, a, c, s)
		}
		endAbandonedOf(ctx, a, c, s)()
		a.hint = func(unknown string) string { return a.hintOf(ctx, s, unknown) }
	}
	return c, s, err
}

// hintTakes limits the search for a similar run ID.
const hintTakes = 2 * time.Second

// hintOf returns a run ID similar to an unknown one. It reconnects, because the command has
// closed its connection.
func (a *App) hintOf(ctx context.Context, s Target, unknown string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hintTakes)
	defer cancel()
	c, err := a.DialOnce(ctx, s)
	if err != nil {
		return ""
	}
	defer c.Close()
	return similarRun(ctx, c, unknown)
}

// similarRun returns a question with a run ID similar to an unknown one, or "".
func similarRun(ctx context.Context, c client.Client, unknown string) string {
	r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000, Query: fmt.Sprintf("WorkflowType IN ('%s', '%s')", spec.WorkflowType, spec.SweepWorkflowType)})
	if err != nil {
		return ""
	}
	var ids []string
	for _, e := range r.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	if near := spec.Nearest(unknown, ids); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return ""
}

func (s Target) String() string {
	if s.Embedded {
		return "the embedded server" // its address may change
	}
	if o, err := s.Client(); s.Address == "" && err == nil {
		return o.HostPort // from the environment or a profile
	}
	return s.Address
}

// NamespaceOf returns the namespace that a command uses on a server.
func NamespaceOf(s Target) (string, error) {
	o, err := s.Client()
	return cmp.Or(o.Namespace, client.DefaultNamespace), err
}
