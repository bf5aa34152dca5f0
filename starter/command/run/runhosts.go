package run

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// startHosts starts the other hosts, if any, waits for them, and assigns a host to each task.
func (l *localRun) startHosts(ctx context.Context) (err error) {
	if l.others == nil || l.hosts != nil {
		return nil
	}
	config := remotehosts.Config{Agent: strings.Fields(l.launchAgent), Version: cli.VersionLine(), Dial: l.server.Conn}
	if config.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	options := workers.Options{
		Queue: l.queue, Owned: true, Role: workers.RoleHost, LogsCopiedTo: logRoot(l.App, l.spec), Debug: l.Debug(), Stdin: l.stdin,
	}
	options.Server.CodecKeys = l.Global.Server.CodecKeys
	if options.Server.Namespace, err = namespaceForHosts(l.server); err != nil {
		return err
	}
	var hosts []remotehosts.Host
	for _, h := range l.others.Elsewhere() {
		options.Host = h.Name
		hosts = append(hosts, remotehosts.Host{Name: h.Name, Login: h.Login, Options: options})
	}
	l.hosts, err = remotehosts.Launch(ctx, config, hosts, func(names []string) {
		l.Say("waiting for %s (%s)", strings.Join(names, ", "), filepath.Base(config.Agent[0]))
	})
	if err != nil {
		return &cli.ExitError{Code: exitcode.Machinery, Cause: err}
	}
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

// namespaceForHosts returns the run's namespace. It refuses a server that requires an API key,
// because every host would have to receive it.
func namespaceForHosts(s cli.Target) (string, error) {
	c, err := s.Client()
	if err != nil {
		return "", err
	}
	if c.Credentials != nil {
		return "", cli.Usagef("-H: an API key is not sent to hosts that are reached over ssh; use a server with TLS certificates or without authentication, or start a `clusterrun worker` on each host, and use submit")
	}
	return cmp.Or(c.Namespace, client.DefaultNamespace), nil
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
