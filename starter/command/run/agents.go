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

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/starter/hosts/agents"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/starter/launchers/torchrun"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// agentsOf is this agent among those that meet to be one run. One of the two is not nil where
// they do.
type agentsOf struct {
	head   *agents.Head       // it has the run
	joined *agents.Membership // it takes part in the run of another

	key      []byte       // of the agents
	queue    string       // of the run of the head
	count    atomic.Int64 // how many agents there are, at the head
	headLost chan error   // the head of others is gone
	left     bool         // it takes part no more
}

// agentsLeave is how long the head waits for the others when its run has ended.
const agentsLeave = 15 * time.Second

// meet takes the endpoint, or has this agent join the run there.
func (l *localRun) meet(ctx context.Context, m *torchrun.Meeting) (err error) {
	c := agents.JoinConfig{Endpoint: m.Endpoint(), Patience: l.spec.StopAfter(2)}
	if c.Key, err = l.agentsKey(m); err != nil {
		return err
	}
	if c.Request, err = l.request(m); err != nil {
		return err
	}
	if isHead(ctx, m) {
		l.agents.count.Store(1)
		l.agents.head, err = agents.Listen(ctx, ownEndpoint(m), agents.HeadConfig{
			Key: c.Key, Own: c.Request, Most: m.Most, Changed: func(n int) { l.agents.count.Store(int64(n)) },
			Dial: func(ctx context.Context) (net.Conn, error) { return l.server.Conn(ctx) },
		})
		switch {
		case errors.Is(err, agents.ErrTaken) && m.Head == nil:
			// By another agent of this machine, as it should be.
		case errors.Is(err, agents.ErrTaken):
			return cli.Usagef("port %d of this machine is in use, by another agent that is the first of all, or by another program; give another port, or this agent another --node-rank", m.Port)
		case err != nil:
			return cli.Usagef("no agent can be reached at %s, which is to be this machine: %s", m.Endpoint(), err)
		default:
			return nil
		}
	}
	l.agents.key = c.Key
	l.agents.joined, err = l.join(ctx, c, m.Timeout)
	return err
}

// isHead reports whether the endpoint is here.
func isHead(ctx context.Context, m *torchrun.Meeting) bool {
	if m.Head != nil {
		return *m.Head
	}
	addresses, _ := net.DefaultResolver.LookupHost(ctx, m.Host) // none: it is not ours
	return specs.IsThisMachine(m.Host) || slices.ContainsFunc(addresses, remotehosts.IsOwnAddress)
}

// ownEndpoint returns where the head listens. A name may mean another address to the others
// than it does here.
func ownEndpoint(m *torchrun.Meeting) string {
	host := ""
	if spec.IsLoopback(m.Host) || remotehosts.IsOwnAddress(m.Host) {
		host = m.Host
	}
	return net.JoinHostPort(host, strconv.Itoa(m.Port))
}

// request returns what this agent tells of itself.
func (l *localRun) request(m *torchrun.Meeting) (agents.Request, error) {
	r := agents.Request{Version: cli.VersionLine(), ID: m.ID, Rank: m.Rank, Encoded: l.Global.Server.CodecKeys != ""}
	var err error
	if r.Host, err = os.Hostname(); err != nil {
		return r, fmt.Errorf("find the name of this machine: %w", err)
	}
	text, err := json.Marshal(l.spec)
	if err == nil {
		err = json.Unmarshal(text, &r.Spec)
	}
	return r, err
}

// describe says in the options of a host worker which one of the agents it is.
func (a *agentsOf) describe(w *workers.Options, s *spec.RunSpec, m *torchrun.Meeting) {
	if m == nil {
		return
	}
	w.Env, w.Slots = m.Own, *s.Hosts.PerHost
	if a.joined != nil {
		w.Host, w.Role, w.Advertise = a.joined.Host, workers.RoleHost, cmp.Or(m.Address, a.joined.Address)
		return
	}
	w.Host, w.Advertise = a.head.Host, cmp.Or(m.Address, m.Host)
}

// startAgents lets the other agents in, where this is their head.
func (l *localRun) startAgents(ctx context.Context, queue string, o runOptions) error {
	if l.agents.head == nil {
		return nil
	}
	l.agents.queue = queue
	r := agents.Run{Queue: queue, RunID: l.run.ID, ExecutionID: l.run.ExecutionID}
	var err error
	if r.Namespace, err = l.namespace(ctx); err != nil {
		return err
	}
	if r.Spec, err = json.Marshal(l.spec); err != nil {
		return err
	}
	l.agents.head.Start(r)
	go l.sayAgents(ctx, o.meeting)
	return nil
}

// sayAgents says how many agents there are, while more are waited for.
func (l *localRun) sayAgents(ctx context.Context, m *torchrun.Meeting) {
	said := int64(0)
	for retry.Sleep(ctx, lookAtPlace) == nil {
		here := l.agents.count.Load()
		s, err := l.run.Status(ctx)
		switch {
		case err != nil || s.Unanswered:
			continue
		case s.State != spec.RunPlacing:
			return
		case here == said:
			continue
		}
		said = here
		l.Say("%s", l.Color.Dim(fmt.Sprintf("waiting for agents at %s: %d of %s are here", m.Endpoint(), here, m.Hosts())))
	}
}

// endAgents waits for the others, whose way to the server we are, and ends their fleet.
func (l *localRun) endAgents() {
	if l.agents.head == nil {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), agentsLeave)
	defer done()
	if l.run == nil {
		done()
	}
	l.agents.head.Close(ctx)
	if l.client != nil && l.agents.queue != "" {
		ctx, done := context.WithTimeout(context.Background(), killAnswer)
		defer done()
		_ = starter.GetFleet(l.client, l.agents.queue).Terminate(ctx, cli.OwnerGone) // else the next command does
	}
}

// slowJoin is after how long it is said what an agent waits for.
const slowJoin = 2 * time.Second

// join waits until this agent takes part in the run at the endpoint.
func (l *localRun) join(ctx context.Context, c agents.JoinConfig, timeout time.Duration) (*agents.Membership, error) {
	bounded, done := context.WithTimeout(ctx, timeout)
	defer done()
	began, said := time.Now(), ""
	joined, err := agents.Join(bounded, c, func(err error) {
		if text := err.Error(); time.Since(began) > slowJoin && text != said {
			said = text
			l.Say("%s", l.Color.Dim(fmt.Sprintf("waiting for the agent at %s: %s", c.Endpoint, text)))
		}
	})
	var refused *agents.RefusedError
	switch {
	case errors.As(err, &refused):
		return nil, cli.Usagef("%s", err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fmt.Errorf("no agent at %s has taken this one within %s (join_timeout of --rdzv-conf); is one started there, and can this host reach the port?", c.Endpoint, timeout)
	}
	return joined, err
}

// takePart brings up the host worker of an agent that has joined.
func (l *localRun) takePart(ctx context.Context, o runOptions) error {
	joined := l.agents.joined
	l.spec = &spec.RunSpec{}
	if err := json.Unmarshal(joined.Spec, l.spec); err != nil {
		return fmt.Errorf("the agent at %s: %w", o.meeting.Endpoint(), err)
	}
	l.id = joined.RunID
	key := filepath.Join(l.dir.Path, "agents.pem")
	if err := os.WriteFile(key, l.agents.key, 0o600); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	l.server = cli.Server{Options: connect.Options{
		Address: o.meeting.Endpoint(), Key: key, Namespace: joined.Namespace, CodecKeys: l.Global.Server.CodecKeys,
	}}
	var err error
	if l.worker, err = worker.StartHostWorker(l.workerOptions(joined.Queue, o), l.std); err != nil {
		return err
	}
	if l.client, err = l.DialOnce(ctx, l.server); err != nil {
		return err
	}
	l.run = starter.Get(l.client, joined.RunID, joined.ExecutionID)
	l.agents.headLost = make(chan error, 1)
	go func() {
		// Until the end of this process, after which the head waits for this agent no more.
		if err := joined.Lost(context.WithoutCancel(ctx)); err != nil {
			l.agents.headLost <- err
		}
	}()
	l.output, err = show(l.App, l.run, l.spec, o, "")
	return err
}

// leaves reports whether a signal has this agent leave the run, which can go on without it.
func (l *localRun) leaves() bool { return l.agents.joined != nil && l.spec.IsElastic() }

// leaveRun has this agent leave the run, at the n-th signal.
func (l *localRun) leaveRun(s os.Signal, n int) {
	switch n {
	case 1:
		l.Say("got %s: leaving run %s; again to kill its processes here", cli.NameOfSignal(s), l.id)
		l.Printer.Hurry()
		close(l.stopAsked)
		l.agents.left = true
		l.worker.StopAll(l.stops(s))
	case 2:
		l.Say("got %s: killing the processes of run %s here", cli.NameOfSignal(s), l.id)
		l.worker.Cut()
	}
}

// hasLeft returns the ending of a run that goes on without this agent.
func (l *localRun) hasLeft() ending {
	return ending{err: &cli.ExitError{
		Code:  cli.CodeOfSignal(l.interrupted.First),
		Cause: fmt.Errorf("this agent has left run %s, which goes on while there are enough others", l.id),
	}}
}

// withoutHead returns the ending of a run whose head is gone.
func (l *localRun) withoutHead(err error) ending {
	return ending{err: &cli.ExitError{
		Code:  exitcode.Machinery,
		Cause: fmt.Errorf("the agent at %s, which has run %s, is gone (%w); the processes here are stopped", l.server, l.id, err),
	}}
}

// withAgents says of a run that was never placed that not all of its agents have come.
func (l *localRun) withAgents(r *spec.RunResult, m *torchrun.Meeting) *spec.RunResult {
	if m == nil || r == nil || r.ErrorType != spec.ErrPlacement || int(l.agents.count.Load()) >= m.Least {
		return r
	}
	changed := *r
	changed.Message = fmt.Sprintf("%d of %s joined at %s within %s. Start `clusterrun torchrun` on the other hosts with the same endpoint and --rdzv-id, or wait longer with --rdzv-conf join_timeout=SECONDS.",
		l.agents.count.Load(), plural.Of(m.Least, "agent", "agents"), m.Endpoint(), m.Timeout)
	return &changed
}

// tellJoined reports how a run of another agent has ended, which has the report.
func (l *localRun) tellJoined(end ending) error {
	switch r := end.result; {
	case r == nil:
		return end.err
	case r.Verdict == spec.VerdictSucceeded:
		return report.PrintResult(l.App, r)
	default:
		l.Say("run %s %s (exit code %d); the agent at %s has the report", l.id, l.Color.Bad(string(r.Verdict)), r.ExitCode, l.server)
		return errors.Join(report.PrintResult(l.App, r), &cli.ExitError{Code: max(r.ExitCode, 1)})
	}
}
