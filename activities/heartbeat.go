package activities

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A heartbeat reports that a host holds a task's lease for a process. With each
// heartbeat the host records the output sizes ([tasklog.Times]). The answers
// report cancellations that the server could not push, so small runs beat often. Large runs beat
// less often to spare the server and the host: a run's tasks together send at most 32 beats a
// second.
const (
	minBeat = time.Second
	// beatPatience is the maximum time to wait for the server's answer to a heartbeat.
	beatPatience = 5 * time.Second
	// firstBeat delays the first heartbeat, which shows the pid to users. It is not 0, because a
	// heartbeat costs the server as much as starting a task, and the server is busy while a run is
	// launched.
	firstBeat = 300 * time.Millisecond
	// Runs of at least manyTasks tasks also spread out their first beats.
	manyTasks = 32
)

// beatInterval returns the time between two beats of a task in a run with the given number of
// tasks. Two successive beats may be lost.
func beatInterval(tasks int, timeout time.Duration) time.Duration {
	return min(max(time.Duration(tasks)*time.Second/manyTasks, minBeat), timeout*2/5)
}

// untilBeat returns an interval that ends at the host's phase within a second. A host that sends
// all of its beats together once a second wakes up far less often than one that sends them at
// different times.
func untilBeat(now time.Time, interval, phase time.Duration) time.Duration {
	return now.Add(interval - phase).Truncate(time.Second).Add(phase).Sub(now)
}

// phaseOf returns a host worker's phase. Different phases keep the beats of many hosts from
// reaching the server at the same moment.
func phaseOf(instance string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance))
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// beater sends the heartbeats of one lease. Each beat has its own goroutine, which exits with the
// beat, because a permanent one would keep the deep stack of a call.
type beater struct {
	lease    *taskLease
	process  supervisor.Process
	due      *time.Timer
	interval time.Duration
	phase    time.Duration
	times    *tasklog.Times
	metrics  *metricsFile
	// answers receives the server's answers that require an action. If the server is temporarily
	// unreachable, no action is required.
	answers chan error
	beating chan struct{} // has an element during a beat
}

func (l *taskLease) newBeater(p *supervisor.Process) *beater {
	tasks := len(l.plan.Cluster.Members)
	b := &beater{
		lease: l, process: *p, interval: l.plan.hurry(beatInterval(tasks, activity.GetInfo(l.ctx).HeartbeatTimeout)), phase: phaseOf(l.Instance), times: tasklog.NewTimes(p.LogDir), metrics: &metricsFile{lease: l, process: *p},
		answers: make(chan error, 1), beating: make(chan struct{}, 1),
	}
	first := firstBeat
	if tasks > manyTasks {
		first += rand.N(b.interval) //nolint:gosec // not a secret: it spreads the beats
	}
	b.due = time.NewTimer(first)
	if bounds := l.plan.bounds; bounds != nil {
		l.holder = lease.NewHolder(*bounds, l.delivered())
	}
	return b
}

func (b *beater) stop() { b.due.Stop() }

// beat sends one heartbeat, unless the previous one is still in progress.
func (b *beater) beat(ctx context.Context) {
	b.due.Reset(untilBeat(time.Now(), b.interval, b.phase))
	select {
	case b.beating <- struct{}{}:
	default:
		return
	}
	// A hanging file system must block neither the heartbeat nor the host's shutdown.
	go func() {
		_ = b.lease.plan.User.Do(func() error {
			b.times.Note()
			b.metrics.note()
			return nil
		})
	}()
	b.lease.group.Go(func(context.Context) {
		defer func() { <-b.beating }()
		beating, cancel := context.WithTimeout(ctx, b.lease.plan.hurry(beatPatience))
		defer cancel()
		b.lease.used.Store(b.lease.usage(b.process, b.times.Written()))
		if at := b.times.Latest(); !at.IsZero() {
			b.lease.wrote.Store(&at)
		}
		if b.lease.mustAct() {
			h, p, k := b.lease.Host, b.lease.plan, b.lease.key
			h.group.Go(func(ctx context.Context) { h.silenced.actOnSilence(ctx, p, k) }) // outlives the lease
		}
		sent, err := b.lease.sendBeat(ctx, beating, b.lease.details(b.process))
		if server.IsContact(err) {
			b.lease.inContact(ctx, sent)
		}
		if temporal.IsCanceledError(err) || server.IsGone(err) {
			select {
			case b.answers <- err:
			default: // an answer is already queued
			}
		}
	})
}

// details returns the heartbeat details of a running process.
func (l *taskLease) details(p supervisor.Process) spec.Heartbeat {
	var wrote time.Time
	if at := l.wrote.Load(); at != nil {
		wrote = *at
	}
	return spec.Heartbeat{
		PID: p.PID, Host: l.Name, Restarts: l.restarts, Started: p.Started, LogDir: l.told(l.plan, p.LogDir),
		Progress: l.progress(l.key), Steps: l.services.StepTime(l.key), Usage: l.used.Load(), LastOutput: wrote, Unsupervised: l.samples.Silent(),
	}
}

// beatsInContact is the number of times a host tries to reach the server before it stops a process
// for lack of contact.
const beatsInContact = 4

// stopAfter returns how long the run's processes continue without contact. 0 means no limit.
func (p *plan) stopAfter() time.Duration {
	if p.bounds != nil {
		return p.bounds.Short
	}
	return p.Spec.StopAfter(p.Cluster.Hosts)
}

// grace returns how long a process without contact has to exit. With two bounds this time is part
// of the lease, which ends with SIGKILL; otherwise it follows the lease.
func (p *plan) grace(stop time.Duration) (grace, early time.Duration) {
	if p.bounds != nil {
		grace = p.bounds.Grace(stop)
		return grace, grace
	}
	return stop, 0
}

// hurry shortens the time between two heartbeats, or the wait for an answer, if the run stops its
// processes sooner.
func (p *plan) hurry(d time.Duration) time.Duration {
	if after := p.stopAfter(); after > 0 {
		return min(d, after/beatsInContact)
	}
	return d
}

// contact returns a process's first contact. If the process needs contact, the server must just
// have answered for this very attempt. The delivery of the attempt counts as such an answer. An
// attempt that was frozen for a while may no longer be valid.
func (l *taskLease) contact() (supervisor.Contact, error) {
	after := l.plan.stopAfter()
	if after == 0 {
		return supervisor.Contact{}, nil
	}
	stop, err := l.plan.stopOf(l.key.Task, "", nil)
	if err != nil {
		return supervisor.Contact{}, err
	}
	grace, early := l.plan.grace(stop.Grace)
	contact := func(from int64) supervisor.Contact {
		return supervisor.Contact{Until: from + (after - early).Nanoseconds(), Signal: stop.Signal, Grace: grace}
	}
	if at := l.delivered(); at > 0 && time.Duration(supervisor.BootNanos()-at) < after/2 {
		return contact(at), nil
	}
	// No process exists yet, but an earlier one's details must be kept.
	var details []any
	if before := (spec.Heartbeat{}); l.resumed && activity.GetHeartbeatDetails(l.ctx, &before) == nil {
		details = append(details, before)
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.plan.hurry(beatPatience))
	defer cancel()
	sent := supervisor.BootNanos()
	switch err := l.Server.RecordActivityHeartbeat(ctx, l.token, details...); {
	case err == nil:
		return contact(sent), nil
	case server.IsGone(err):
		return supervisor.Contact{}, errSuperseded
	case server.IsContact(err):
		return supervisor.Contact{}, retryAt("its start was cancelled: "+err.Error(), "NotStarted", 0)
	default:
		return supervisor.Contact{}, fmt.Errorf("%w: the Temporal server does not answer about it: %v", errAway, err)
	}
}

// delivered returns when the poll for this attempt was sent, or 0 if the time is unknown.
func (l *taskLease) delivered() int64 {
	if l.AskedAt == nil {
		return 0
	}
	return l.AskedAt(l.token)
}

// inContact renews the contact of the task's process after the server answered a heartbeat sent at
// the given time of CLOCK_BOOTTIME.
func (l *taskLease) inContact(ctx context.Context, sent int64) {
	after := l.plan.stopAfter()
	if after == 0 {
		return
	}
	until := sent + after.Nanoseconds()
	if l.holder != nil {
		l.holder.Answered(sent)
		until = l.holder.Until()
	}
	l.renew(ctx, until)
}

func (l *taskLease) renew(ctx context.Context, until int64) {
	if stop, err := l.plan.stopOf(l.key.Task, "", nil); err == nil {
		_, early := l.plan.grace(stop.Grace)
		until -= early.Nanoseconds()
	}
	err := l.Supervisor.Renew(ctx, supervisor.RenewRequest{Key: l.key, Fence: l.fence, Until: until})
	if err != nil && ctx.Err() == nil {
		l.Log.Debug("could not extend how long a process may run without the server", zap.Stringer("task", l.key), zap.Error(err))
	}
}

// reachesServer sends the server a cheap request; see [hostservice.Probe].
func (h *core) reachesServer(ctx context.Context, namespace string) bool {
	_, err := h.Server.Identity(ctx, namespace)
	return err == nil || server.IsGone(err)
}

// passOn forwards another host's heartbeat to the server; see [hostservice.Pass].
func (h *core) passOn(ctx context.Context, token []byte, beat spec.Heartbeat) lease.Answer {
	switch err := h.Server.RecordActivityHeartbeat(ctx, token, beat); {
	case server.IsGone(err):
		return lease.Gone
	case temporal.IsCanceledError(err):
		return lease.Cancelled
	case server.IsContact(err):
		return lease.Renewed
	}
	return ""
}

// sendBeat sends a heartbeat, and returns the server's answer and the time of the request. If the
// run has two bounds and the server does not answer, the run's other hosts are asked to pass the
// heartbeat on; if they cannot reach the server either, the lease is extended. While the server is away,
// the server and the hosts are asked at the same time. ctx is canceled when the process exits, and
// beating after beatPatience.
func (l *taskLease) sendBeat(ctx, beating context.Context, beat spec.Heartbeat) (sent int64, err error) {
	sent = supervisor.BootNanos()
	if l.holder == nil {
		return sent, l.Server.RecordActivityHeartbeat(beating, l.token, beat)
	}
	direct := make(chan error, 1)
	l.group.Go(func(context.Context) { direct <- l.Server.RecordActivityHeartbeat(beating, l.token, beat) })
	if !l.away {
		if err = <-direct; server.IsContact(err) || server.IsGone(err) {
			return sent, err
		}
		l.away = true
		direct <- err
		sent = supervisor.BootNanos()
	}
	asked := make(chan lease.Answer, 1)
	l.group.Go(func(context.Context) { asked <- l.askOthers(ctx, beat) })
	for range 2 {
		select {
		case err = <-direct:
			if server.IsContact(err) || server.IsGone(err) {
				l.away = false
				return sent, err
			}
		case a := <-asked:
			switch a {
			case lease.Renewed:
				return sent, nil
			case lease.Cancelled:
				return sent, temporal.NewCanceledError()
			case lease.Gone:
				return sent, serviceerror.NewNotFound("the server no longer has the attempt, according to another host")
			case lease.Silent:
				l.holder.Agreed(sent)
				l.renew(ctx, l.holder.Until())
			}
		}
	}
	return sent, err
}

func (l *taskLease) askOthers(ctx context.Context, beat spec.Heartbeat) lease.Answer {
	patience := l.plan.hurry(beatPatience)
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.witnesses.Ask(asking, l.key.Run, l.plan.Witnesses, hostservice.Question{
		Task: l.key.Task, Generation: l.key.Generation, Offer: l.offer, Token: l.token, Beat: beat, Within: patience / 2,
	})
}

// withDeadline returns the plan with the deadline of max_run_time, which counts from the first task
// started on this host. The workflow starts its own timer at the same moment.
func (h *Host) withDeadline(run runkey.Run) (*plan, error) {
	p, err := h.plans.get(run)
	if err != nil || p.Spec.MaxRunTime == nil || p.Deadline != 0 && p.BootID == proc.BootID() {
		return p, err
	}
	return h.plans.change(run, func(p *plan) error {
		if p.DeadlineWall.IsZero() {
			from := h.now()
			if p.Elapsed > 0 {
				from = p.Reserved // Elapsed includes the time until p.Reserved
			}
			p.DeadlineWall = from.Add(p.Spec.MaxRunTime.Std() - p.Elapsed)
		}
		// CLOCK_BOOTTIME does not jump, but restarts with each boot.
		p.Deadline, p.BootID = supervisor.BootNanos()+int64(p.DeadlineWall.Sub(h.now())), proc.BootID()
		return nil
	})
}

// overdue reports whether max_run_time has passed.
func (p *plan) overdue() bool { return p.Deadline != 0 && supervisor.BootNanos() >= p.Deadline }

// killAt returns when the supervisor kills the process without a request, or 0 for never. If the
// server can be reached, the workflow's own timer fires earlier; this limit works during outages.
func (p *plan) killAt() int64 {
	if p.Deadline == 0 {
		return 0
	}
	return p.Deadline + int64(time.Second)
}
