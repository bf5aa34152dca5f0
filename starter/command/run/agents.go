package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/starter/hosts/agents"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/starter/internal/unexecuted"
	"github.com/clusterrun/clusterrun/starter/launchers/torchrun"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// agentsOf describes this agent's role in a run that several agents form together. If agents meet,
// either head or joined is set.
type agentsOf struct {
	head   *agents.Head       // set if this agent is the head and starts the run
	joined *agents.Membership // set if this agent has joined another agent's run

	key      []byte       // shared by the agents
	queue    string       // queue of the run, at the head
	count    atomic.Int64 // number of agents, at the head
	headLost chan error   // receives an error if the head is gone
	left     bool         // whether this agent has left the run
}

// agentsLeave limits how long the head, after its run has ended, waits for the other agents.
const agentsLeave = 15 * time.Second

// meet either makes this agent the head or joins the head's run. The head listens at the endpoint,
// and connects the other agents to the server with dial.
func (g *agentsOf) meet(ctx context.Context, a *cli.App, s *spec.RunSpec, m *torchrun.Meeting, dial func(context.Context) (net.Conn, error)) (err error) {
	c := agents.JoinConfig{Endpoint: m.Endpoint(), Patience: s.StopAfter(2)}
	if c.Key, err = agentsKey(a, m); err != nil {
		return err
	}
	if c.Request, err = joinRequest(a, s, m); err != nil {
		return err
	}
	if isHead(ctx, m) {
		g.count.Store(1)
		g.head, err = agents.Listen(ctx, ownEndpoint(m), agents.HeadConfig{
			Key: c.Key, Own: c.Request, Most: m.Most, Changed: func(n int) { g.count.Store(int64(n)) }, Dial: dial,
		})
		switch {
		case errors.Is(err, agents.ErrTaken) && m.Head == nil:
			// Another agent on this machine is the head, as intended.
		case errors.Is(err, agents.ErrTaken):
			return cli.Usagef("port %d on this machine is already used by another first agent, or by another program; use another port, or start this agent with another --node-rank", m.Port)
		case err != nil:
			return cli.Usagef("no agent can be reached at %s, which should be this machine: %s", m.Endpoint(), err)
		default:
			return nil
		}
	}
	g.key = c.Key
	g.joined, err = join(ctx, a, c, m.Timeout)
	return err
}

// isHead reports whether this agent should be the head. If m.Head does not determine it, the agent
// is the head if the endpoint is on its machine.
func isHead(ctx context.Context, m *torchrun.Meeting) bool {
	if m.Head != nil {
		return *m.Head
	}
	addresses, _ := net.DefaultResolver.LookupHost(ctx, m.Host) // an unknown name does not belong to this machine
	return specs.IsThisMachine(m.Host) || slices.ContainsFunc(addresses, remotehosts.IsOwnAddress)
}

// ownEndpoint returns the head's listen address. If the endpoint is a name, the head listens on
// all addresses, because other hosts may resolve the name differently.
func ownEndpoint(m *torchrun.Meeting) string {
	host := ""
	if spec.IsLoopback(m.Host) || remotehosts.IsOwnAddress(m.Host) {
		host = m.Host
	}
	return net.JoinHostPort(host, strconv.Itoa(m.Port))
}

// joinRequest returns this agent's request to join a run.
func joinRequest(a *cli.App, s *spec.RunSpec, m *torchrun.Meeting) (agents.Request, error) {
	r := agents.Request{Version: cli.VersionLine(), ID: m.ID, Rank: m.Rank, Encoded: a.Global.Server.CodecKeys != ""}
	var err error
	if r.Host, err = os.Hostname(); err != nil {
		return r, fmt.Errorf("find this machine's name: %w", err)
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &r.Spec)
	}
	return r, err
}

// describe sets options for this agent's host worker. It does nothing if m is nil.
func (g *agentsOf) describe(w *workers.Options, s *spec.RunSpec, m *torchrun.Meeting) {
	if m == nil {
		return
	}
	w.Env, w.Slots = m.Own, *s.Hosts.PerHost
	if g.joined != nil {
		w.Host, w.Role, w.Advertise = g.joined.Host, workers.RoleHost, cmp.Or(m.Address, g.joined.Address)
		return
	}
	w.Host, w.Advertise = g.head.Host, cmp.Or(m.Address, m.Host)
}

// start lets the other agents join the run if this agent is the head.
func (g *agentsOf) start(ctx context.Context, a *cli.App, run *starter.Run, s *spec.RunSpec, on cli.Target, queue string, m *torchrun.Meeting) error {
	if g.head == nil {
		return nil
	}
	g.queue = queue
	r := agents.Run{Queue: queue, RunID: run.ID, ExecutionID: run.ExecutionID}
	var err error
	if r.Namespace, err = namespaceForHosts(on); err != nil {
		return err
	}
	if r.Spec, err = json.Marshal(s); err != nil {
		return err
	}
	g.head.Start(r)
	go g.sayCount(ctx, a, run, m)
	return nil
}

// sayCount prints the number of agents whenever it changes, until the run is placed.
func (g *agentsOf) sayCount(ctx context.Context, a *cli.App, run *starter.Run, m *torchrun.Meeting) {
	said := int64(0)
	for retry.Sleep(ctx, lookAtPlace) == nil {
		here := g.count.Load()
		s, err := run.Status(ctx)
		switch {
		case err != nil || s.Unanswered:
			continue
		case s.State != spec.RunPlacing:
			return
		case here == said:
			continue
		}
		said = here
		a.Say("%s", a.Color.Dim(fmt.Sprintf("waiting for agents at %s: %d of %s have joined", m.Endpoint(), here, m.Hosts())))
	}
}

// end terminates the agents' fleet. If run is not nil, it first waits for the other agents, which
// reach the server through this agent. c may be nil.
func (g *agentsOf) end(run *starter.Run, c client.Client) {
	if g.head == nil {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), agentsLeave)
	defer done()
	if run == nil {
		done()
	}
	g.head.Close(ctx)
	if c != nil && g.queue != "" {
		ctx, done := context.WithTimeout(context.Background(), killAnswer)
		defer done()
		_ = unexecuted.EndFleet(ctx, c, g.queue, cli.OwnerGone) // if this fails, the next command will do it
	}
}

// slowJoin is how long an agent waits before it reports what it is waiting for.
const slowJoin = 2 * time.Second

// join waits until this agent has joined the run at the endpoint.
func join(ctx context.Context, a *cli.App, c agents.JoinConfig, timeout time.Duration) (*agents.Membership, error) {
	bounded, done := context.WithTimeout(ctx, timeout)
	defer done()
	began, said := time.Now(), ""
	joined, err := agents.Join(bounded, c, func(err error) {
		if text := err.Error(); time.Since(began) > slowJoin && text != said {
			said = text
			a.Say("%s", a.Color.Dim(fmt.Sprintf("waiting for the agent at %s: %s", c.Endpoint, text)))
		}
	})
	switch {
	case starter.IsError[*agents.RefusedError](err):
		return nil, cli.Usagef("%s", err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fmt.Errorf("no agent at %s has accepted this one within %s (join_timeout of --rdzv-conf); check that one was started there and that this host can reach the port", c.Endpoint, timeout)
	}
	return joined, err
}

// takePart starts the host worker of an agent that has joined.
func (l *localRun) takePart(ctx, starting context.Context) error {
	joined := l.agents.joined
	l.spec = &spec.RunSpec{}
	if err := json.Unmarshal(joined.Spec, l.spec); err != nil {
		return fmt.Errorf("the agent at %s: %w", l.meeting.Endpoint(), err)
	}
	l.id = joined.RunID
	key := filepath.Join(l.dir.Path, "agents.pem")
	if err := os.WriteFile(key, l.agents.key, 0o600); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	l.server = cli.Target{Options: connect.Options{
		Address: l.meeting.Endpoint(), Key: key, Namespace: joined.Namespace, CodecKeys: l.Global.Server.CodecKeys,
	}}
	var err error
	if l.worker, err = worker.StartHostWorker(l.workerOptions(joined.Queue), l.std, l.workerDied); err != nil {
		return err
	}
	if l.client, err = l.DialOnce(starting, l.server); err != nil {
		return err
	}
	l.run = starter.Get(l.client, joined.RunID, joined.ExecutionID)
	l.agents.headLost = make(chan error, 1)
	go func() {
		// The connection lasts until this process exits; the head then no longer waits for this
		// agent.
		if err := joined.Lost(context.WithoutCancel(ctx)); err != nil {
			l.agents.headLost <- err
		}
	}()
	l.output, err = show(l.App, l.run, l.spec, l.runOptions, "")
	return err
}

// mayLeave reports whether a signal makes this agent leave the run, which continues without it.
func (g *agentsOf) mayLeave(s *spec.RunSpec) bool { return g.joined != nil && s.IsElastic() }

// leaveRun leaves the run at the first signal and kills its local processes at the second.
func (l *localRun) leaveRun(s os.Signal, n int) {
	switch n {
	case 1:
		l.Say("got %s: leaving run %s; repeat to kill its processes on this host", cli.NameOfSignal(s), l.id)
		l.Printer.Hurry()
		l.stopAsked.Store(true)
		l.agents.left = true
		l.worker.StopAll(l.stops(s))
	case 2:
		l.Say("got %s: killing the processes of run %s on this host", cli.NameOfSignal(s), l.id)
		l.worker.Cut()
	}
}

// hasLeft returns the ending to report for a run that continues without this agent.
func (l *localRun) hasLeft() ending {
	return ending{err: &cli.ExitError{
		Code:  cli.CodeOfSignal(l.interrupted.First),
		Cause: fmt.Errorf("this agent has left run %s, which continues while enough agents remain", l.id),
	}}
}

// withAgents returns r. If the run was never placed because agents were missing, it adds a message
// about them.
func (g *agentsOf) withAgents(r *spec.RunResult, m *torchrun.Meeting) *spec.RunResult {
	if m == nil || r == nil || r.ErrorType != spec.ErrPlacement || int(g.count.Load()) >= m.Least {
		return r
	}
	changed := *r
	changed.Message = fmt.Sprintf("%d of %s joined at %s within %s. Start `clusterrun torchrun` on the other hosts with the same endpoint and --rdzv-id, or wait longer with --rdzv-conf join_timeout=SECONDS.",
		g.count.Load(), units.Count(m.Least, "agent", "agents"), m.Endpoint(), m.Timeout)
	return &changed
}

// tellJoined reports the end of another agent's run. That agent prints the full report.
func (l *localRun) tellJoined(end ending) error {
	switch r := end.result; {
	case r == nil:
		return end.err
	case r.Verdict == spec.VerdictSucceeded:
		return report.PrintResult(l.App, r)
	default:
		l.Say("run %s %s (exit code %d); the agent at %s prints the report", l.id, l.Color.Bad(string(r.Verdict)), r.ExitCode, l.server)
		return errors.Join(report.PrintResult(l.App, r), &cli.ExitError{Code: max(r.ExitCode, 1)})
	}
}
