package run

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// launch starts a run's other hosts while everything else comes up. Its methods may be called on
// a nil launch, which means that there are no other hosts.
type launch struct {
	done chan struct{} // closed when hosts and err are set

	hosts *remotehosts.Hosts
	err   error

	// served is closed when server is set.
	served chan struct{}
	once   sync.Once
	server cli.Server
}

// serve sets the server for the host workers.
func (l *launch) serve(s cli.Server) {
	if l != nil {
		l.once.Do(func() {
			l.server = s
			close(l.served)
		})
	}
}

// dial connects a host to the server. It waits until the server is known.
func (l *launch) dial(ctx context.Context) (net.Conn, error) {
	select {
	case <-l.served:
		return l.server.Conn(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// abandon cleans up a launch with a canceled context.
func (l *launch) abandon() {
	<-l.done
	l.hosts.Close()
}

// launchHosts starts launching the other hosts.
func launchHosts(ctx context.Context, a *cli.App, s *spec.RunSpec, queue string, o runOptions) (*launch, error) {
	agent := strings.Fields(o.launchAgent)
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	options := workers.Options{
		Queue: queue, Owned: true, Role: workers.RoleHost, LogsCopiedTo: logRoot(a, s), Debug: a.Debug(), Stdin: o.stdin,
	}
	options.Server.CodecKeys = a.Global.Server.CodecKeys
	if options.Server.Namespace, err = namespaceForHosts(ctx, a); err != nil {
		return nil, err
	}
	l := &launch{done: make(chan struct{}), served: make(chan struct{})}
	var hosts []remotehosts.Host
	for _, h := range o.others.Elsewhere() {
		options.Host = h.Name
		hosts = append(hosts, remotehosts.Host{Name: h.Name, Login: h.Login, Options: options})
	}
	config := remotehosts.Config{
		Agent: agent, Version: cli.VersionLine(), Program: program, Dial: l.dial,
	}
	go func() {
		defer close(l.done)
		l.hosts, l.err = remotehosts.Launch(ctx, config, hosts, func(names []string) {
			a.Say("waiting for %s (%s)", strings.Join(names, ", "), filepath.Base(agent[0]))
		})
	}()
	return l, nil
}

// namespaceForHosts returns the run's namespace. It refuses a server that requires an API key,
// because every host would have to receive it.
func namespaceForHosts(ctx context.Context, a *cli.App) (string, error) {
	s, external, err := a.External(ctx)
	if err != nil || !external {
		return client.DefaultNamespace, err
	}
	c, err := s.Client()
	if err != nil {
		return "", err
	}
	if c.Credentials != nil {
		return "", cli.Usagef("-H: an API key is not sent to hosts that are reached over ssh; use a server with TLS certificates or without authentication, or start a `clusterrun worker` on each host, and use submit")
	}
	return cmp.Or(c.Namespace, client.DefaultNamespace), nil
}

// awaitHosts waits for the other hosts, if any, and assigns a host to each task.
func (l *localRun) awaitHosts(ctx context.Context) error {
	if l.launch == nil || l.hosts != nil {
		return nil
	}
	select {
	case <-l.launch.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.launch.err != nil {
		return &cli.ExitError{Code: exitcode.Machinery, Cause: l.launch.err}
	}
	l.hosts = l.launch.hosts
	if l.others.Placed {
		return nil
	}
	machines := map[string]specs.Machine{}
	for i, h := range l.others.Elsewhere() {
		f := l.hosts.Facts()[i]
		machines[h.Name] = specs.Machine{Gpus: f.GPUs, Cpus: f.CPUs, LimitedBy: f.GPUsLimitedBy}
	}
	return l.place(l.spec, machines)
}

// ownAddress returns this machine's address as seen by the other hosts, if it belongs to this
// machine. Otherwise it returns "", and the host name is used.
func ownAddress(facts []remotehosts.Facts) string {
	for _, f := range facts {
		if !spec.IsLoopback(f.Peer) && remotehosts.IsOwnAddress(f.Peer) {
			return f.Peer
		}
	}
	return ""
}

// copyOutput copies the other hosts' logs to the followed directory.
func (l *localRun) copyOutput() {
	if l.hosts == nil {
		return
	}
	l.noteBegin()
	l.hosts.CopyOutput(l.run.ID, l.run.ExecutionID, l.output.dir, func(err error) {
		l.broken.Store(true)
		l.Say("%s", err)
	}, l.output.insert)
}

// endHosts stops the other hosts once all their output has arrived, and reports output that is
// missing. A second signal ends the wait for output.
func (l *localRun) endHosts() {
	if l.hosts == nil {
		return
	}
	ctx, hurry := context.WithCancel(context.Background())
	defer hurry()
	done := make(chan error, 1)
	go func() { done <- l.hosts.End(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				l.broken.Store(true)
				l.Say("%s", err)
			}
			return
		case s := <-l.signals:
			if s != syscall.SIGPIPE && l.interrupted.Add(s) > 1 {
				hurry()
			}
		}
	}
}

// lostHost reports that a host can no longer be reached.
func (l *localRun) lostHost(err error) {
	if l.isStopping() {
		l.Say("%s", err)
		return
	}
	text := "the run waits for it (on_disconnect: keep)"
	if after := l.spec.StopAfter(2); after > 0 {
		text = fmt.Sprintf("its processes stop when it detects this, after at most %s, and the run then gives it up", spec.Duration(after))
	}
	l.Say("%s; %s", err, text)
}
