package server

import (
	"context"
	"reflect"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Membership keeps a host in its queue's fleet.
type Membership struct {
	server *Server
	queue  string
	host   fleet.Host
	checks HostChecks

	mu sync.Mutex
	// open is the number of open leases. If there are two, the older one is about to close. changed
	// receives an element after open has changed.
	open    int
	changed chan struct{}
	// beat is the interval between heartbeats of the last lease.
	beat time.Duration
	// confirmed is when the server last confirmed the lease.
	confirmed time.Time
	// leaves is closed when the host leaves in an orderly way.
	leaves chan struct{}
	// again receives an element when Rejoin is called.
	again chan struct{}
}

// HostChecks are a host's checks.
type HostChecks interface {
	// First waits until all checks have a result, or atMost has passed.
	First(ctx context.Context, atMost time.Duration)
	Names() []string
	Failing() []fleet.FailedCheck
	// Changed receives an element after Failing has changed.
	Changed() <-chan struct{}
	Results() []fleet.CheckResult
}

// NewMembership returns a host's membership in the queue's fleet.
func NewMembership(s *Server, queue string, h fleet.Host, checks HostChecks) *Membership {
	return &Membership{
		server: s, queue: queue, host: h, checks: checks,
		changed: make(chan struct{}, 1), leaves: make(chan struct{}), again: make(chan struct{}, 1), beat: fleet.HeartbeatInterval(1), confirmed: time.Now(),
	}
}

const (
	// leaseTakes limits how long a host waits to join, and then for its lease, because many hosts
	// may join simultaneously.
	leaseTakes = time.Minute
	// checksTake limits how long a host waits for the first results of its checks before it joins.
	// While a check does not have a result, the host does not get tasks.
	checksTake = 2 * time.Second
)

// Keep joins the fleet. Until ctx is done, it rejoins whenever the host has lost its place, its
// checks have changed, or [Membership.Rejoin] is called. Before it joins, it calls holds to find
// what runs hold on this host. It calls refused with each refusal, and with nil once the host has
// joined.
func (m *Membership) Keep(ctx context.Context, holds func() []fleet.Holding, refused func(error)) {
	again := retry.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}
	m.checks.First(ctx, checksTake)
	for ctx.Err() == nil {
		select {
		case <-m.checks.Changed(): // join reports the latest results
		default:
		}
		select {
		case <-m.again:
		default:
		}
		held := holds()
		if err := m.join(ctx, held); err != nil {
			refused(err)
			_ = again.Sleep(ctx)
			continue
		}
		if !reflect.DeepEqual(held, holds()) {
			continue // the fleet may have newer changes than this list
		}
		refused(nil)
		again.Reset()
		wait := leaseTakes
		for m.await(ctx, true, wait) && m.await(ctx, false, 0) {
			wait = m.leaseFollows()
		}
	}
}

// leaseFollows returns how long a host waits for its next lease before it rejoins. A fleet that
// continues in another execution grants new leases to all hosts on its own. In a large fleet, this
// takes a while, and hosts that rejoin too early would soon make it continue again.
func (m *Membership) leaseFollows() time.Duration {
	const small = 2 * time.Second // in a small fleet
	m.mu.Lock()
	defer m.mu.Unlock()
	return small + m.beat - fleet.HeartbeatInterval(1)
}

// await waits until this host has a lease or, if leased is false, does not have one. It reports
// whether that happened before wait had passed and before the checks changed. A wait of 0 means no
// limit.
func (m *Membership) await(ctx context.Context, leased bool, wait time.Duration) bool {
	var over <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	for {
		m.mu.Lock()
		now := m.open > 0
		m.mu.Unlock()
		if now == leased {
			return true
		}
		select {
		case <-m.changed:
		case <-m.checks.Changed():
			return false
		case <-m.again:
			return false
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (m *Membership) count(leases int) {
	m.mu.Lock()
	m.open += leases
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Leave closes the lease in an orderly way, so that the fleet does not wait for this host.
func (m *Membership) Leave() { close(m.leaves) }

// join joins the fleet, and starts it if necessary.
func (m *Membership) join(ctx context.Context, holds []fleet.Holding) error {
	c, err := m.server.connected()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTakes)
	defer cancel()
	host := m.host
	host.Checks, host.Failing = m.checks.Names(), m.checks.Failing()
	id := spec.FleetID(m.queue)
	start := c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: m.queue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowTaskTimeout:      spec.WorkflowTaskTimeout,
		StaticSummary:            "the hosts of queue " + m.queue,
	}, spec.FleetWorkflowType, (*fleet.State)(nil))
	h, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: spec.UpdateJoin, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{fleet.Joined{Host: host, Holds: holds}},
		},
	})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// Freed reports to the fleet that a run no longer uses this host. A fleet that is started later is
// notified when this host joins.
func (m *Membership) Freed(ctx context.Context, run fleet.Run) error {
	c, err := m.server.connected()
	if err != nil {
		return err
	}
	err = c.SignalWorkflow(ctx, spec.FleetID(m.queue), "", spec.SignalFleet, fleet.Message{Freed: &fleet.Freed{Run: run, Host: m.host.Name}})
	if servererror.IsNotFound(err) {
		return nil
	}
	return err
}

// Rejoin makes Keep rejoin.
func (m *Membership) Rejoin() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// Confirmed returns when the server last confirmed that this host is in the fleet, or, before that,
// when the host worker started.
func (m *Membership) Confirmed() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.confirmed
}

// HostLease is the activity that lasts as long as this host is in the fleet. Its heartbeats are
// sent through the client, so only an answer from the server stops it.
func (m *Membership) HostLease(ctx context.Context, in fleet.HostLeaseInput) error {
	if in.Instance != m.host.Instance {
		return temporal.NewNonRetryableApplicationError("this is another host worker", "Superseded", nil)
	}
	beat := in.Beat
	m.mu.Lock()
	m.beat = beat
	m.mu.Unlock()
	m.count(1)
	defer m.count(-1)
	token := activity.GetInfo(ctx).TaskToken
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		beating, cancel := context.WithTimeout(ctx, beat)
		err := m.server.RecordActivityHeartbeat(beating, token, m.results()...)
		cancel()
		if temporal.IsCanceledError(err) || IsGone(err) {
			return err
		}
		if err == nil {
			m.mu.Lock()
			m.confirmed = time.Now()
			m.mu.Unlock()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err() // the server pushed the cancellation
		case <-m.leaves:
			return nil
		case <-activity.GetWorkerStopChannel(ctx):
			// The next side rejoins.
			return temporal.NewNonRetryableApplicationError("the host worker is being restarted", "HostWorkerAway", nil)
		}
	}
}

// results returns a heartbeat's details: the check results, if any.
func (m *Membership) results() []any {
	if results := m.checks.Results(); len(results) > 0 {
		return []any{fleet.HostBeat{Host: m.host.Name, Checks: results}}
	}
	return nil
}

// FleetCheck is an activity that returns which of the given runs have finished. Until at least one
// has ended, it returns a retryable error, because retries do not add to the history.
func (m *Membership) FleetCheck(ctx context.Context, in fleet.CheckInput) (fleet.CheckOutput, error) {
	var out fleet.CheckOutput
	for _, run := range in.Runs {
		d, err := m.server.DescribeRun(ctx, run.WorkflowID, run.RunID)
		switch {
		case servererror.IsNotFound(err):
		case err != nil:
			return out, err
		case workflowstatus.IsOpen(d.GetWorkflowExecutionInfo().GetStatus()):
			continue
		}
		out.Ended = append(out.Ended, run)
	}
	if len(out.Ended) == 0 {
		return out, temporal.NewApplicationErrorWithOptions("all of them are still pending", "Unchanged",
			temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	}
	return out, nil
}
