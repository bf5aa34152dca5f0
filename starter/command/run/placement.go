package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// prepareHere completes a spec for a run on this machine, and refuses tasks on other machines. Only
// this command polls the run's private queues, so such tasks could only time out.
func prepareHere(s *spec.RunSpec, o runOptions) error {
	if err := specs.InThisDirectory(s); err != nil {
		return err
	}
	switch {
	case o.meeting != nil:
		return nil
	case o.others != nil:
		return prepareElsewhere(s, o)
	}
	own, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find this machine's name: %w", err)
	}
	e := &cli.UsageError{}
	for i, g := range s.Tasks {
		for j, address := range g.Addresses {
			host, _, err := spec.SplitAddress(address)
			if err != nil || spec.IsLoopback(host) || host == own {
				continue
			}
			path := fmt.Sprintf("tasks[%d].addresses[%d]", i, j)
			if specs.IsThisMachine(host) {
				e.Problems = append(e.Problems, fmt.Sprintf("%s: %q is another name for this machine; use localhost or %s", path, host, own))
				continue
			}
			e.Problems = append(e.Problems, fmt.Sprintf("%s: %q is not this machine, but run starts everything on this machine; start `clusterrun worker --host-name %s` on that host, and use `clusterrun submit` or run --remote", path, host, host))
		}
	}
	if what := specs.Elsewhere(s); what != "" {
		e.Problems = append(e.Problems, what+"; run starts everything on this machine unless -H names hosts; use `clusterrun submit` or run --remote")
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// prepareElsewhere completes a spec for a run that also uses other hosts.
func prepareElsewhere(s *spec.RunSpec, o runOptions) error {
	if strings.TrimSpace(o.launchAgent) == "" {
		return cli.Usagef("--launch-agent is empty; name a program that can be called like ssh")
	}
	if s.Hosts.PerHost != nil && o.others.PerHost == "" {
		o.others.PerHost = strconv.Itoa(*s.Hosts.PerHost)
	}
	o.others.Spread = s.Hosts.Strategy == spec.StrategySpread
	s.Hosts.PerHost, s.Hosts.Strategy = nil, "" // the addresses replace these fields
	if what := specs.Elsewhere(s); what != "" {
		return cli.Usagef("%s: %s already names the hosts, which get as many tasks as they have slots; omit one of the two", what, o.others.Flag)
	}
	if s.OnDisconnect == "" {
		// A connection that is lost is never restored even if there is only one host.
		s.OnDisconnect = spec.OnDisconnectStop(time.Duration(spec.DefaultStopAfter))
	}
	return o.place(s, nil)
}

// place assigns a host to each task, unless the slot count of some host is still unknown, and
// rejects --stdin and --foreground if they conflict with the placement.
func (o runOptions) place(s *spec.RunSpec, machines map[string]specs.Machine) error {
	if err := o.others.Place(s, machines); err != nil {
		return cli.Usagef("%s", err)
	}
	if _, ok := s.Task(o.stdin); !ok && o.stdin != "" && o.others.Placed {
		return cli.Usagef("--stdin %s: use none or a task; the run has %s", o.stdin, specs.TaskNames(s))
	}
	if t, ok := s.Task(o.foreground); ok {
		host, _, _ := spec.SplitAddress(t.Address) // empty if a host's slots are still unknown
		if !specs.IsThisMachine(host) {
			return cli.Usagef("--foreground %s: the task is on another host, without a terminal; omit --foreground, or place the task on this machine", o.foreground)
		}
	}
	return nil
}

// shipToHosts sends the run's shipped files to its other hosts.
func (l *localRun) shipToHosts(ctx context.Context) error {
	if l.archive == nil || l.hosts == nil {
		return nil
	}
	return l.hosts.Ship(ctx, l.archive.Archive, func(host string) io.ReadCloser {
		return specs.Progress(l.App, l.archive, "host "+host)
	})
}
