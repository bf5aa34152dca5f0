package activities

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Heartbeats report that a task's lease is held, and where its process is. With each one the
// host records the sizes of the process's output ([tasklog.Times]). The answers report
// cancellations that the server could not push, so small runs beat often. Large runs beat
// less often, which spares the server and the host: the tasks of a run send at most 32 beats
// a second.
const (
	minBeat = time.Second
	// beatPatience is how long the server may take to answer a heartbeat.
	beatPatience = 5 * time.Second
	// firstBeat is how soon people see the pid. It is not 0, because a heartbeat costs the
	// server as much as the start of a task, and the server is busy while a run is being
	// launched.
	firstBeat = 300 * time.Millisecond
	// manyTasks is the size from which on the first beats of a run are spread out, too.
	manyTasks = 32
)

// beatInterval returns the time between two beats of a task in a run with that many tasks.
// Two successive beats may be lost.
func beatInterval(tasks int, timeout time.Duration) time.Duration {
	return min(max(time.Duration(tasks)*time.Second/manyTasks, minBeat), timeout*2/5)
}

// untilBeat returns an interval that ends at the phase of the host within a second. The beats
// of a host come together once a second, which wakes it up far less often than beats at
// different times.
func untilBeat(now time.Time, interval, phase time.Duration) time.Duration {
	return now.Add(interval - phase).Truncate(time.Second).Add(phase).Sub(now)
}

// phaseOf returns the phase of a host worker. Different phases keep the beats of many hosts
// from reaching the server at the same moment.
func phaseOf(instance string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance))
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// beater sends the heartbeats of one lease. Each beat has a goroutine of its own only for as
// long as it takes: a permanent one would keep the deep stack of a call.
type beater struct {
	lease    *taskLease
	process  supervisor.Process
	due      *time.Timer
	interval time.Duration
	phase    time.Duration
	times    *tasklog.Times
	// answers has the server's answers that require an action. A server that is temporarily
	// away requires none.
	answers chan error
	beating chan struct{} // has an element during a beat
}

func (l *taskLease) newBeater(p supervisor.Process) *beater {
	tasks := len(l.plan.Cluster.Members)
	b := &beater{
		lease: l, process: p, interval: l.plan.hurry(beatInterval(tasks, activity.GetInfo(l.ctx).HeartbeatTimeout)), phase: phaseOf(l.Instance), times: tasklog.NewTimes(p.LogDir),
		answers: make(chan error, 1), beating: make(chan struct{}, 1),
	}
	first := firstBeat
	if tasks > manyTasks {
		first += rand.N(b.interval) //nolint:gosec // not a secret: it spreads the beats
	}
	b.due = time.NewTimer(first)
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
	// This has its own goroutine: a file system that hangs must block neither the heartbeat
	// nor the end of the host.
	go func() {
		_ = b.lease.plan.User.Do(func() error {
			b.times.Note()
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
			h.group.Go(func(ctx context.Context) { h.silenced.actOnSilence(ctx, p, k) }) // it outlives the lease
		}
		sent := supervisor.BootNanos()
		err := b.lease.Server.RecordActivityHeartbeat(beating, b.lease.token, b.lease.details(b.process))
		if server.IsContact(err) {
			b.lease.inContact(ctx, sent)
		}
		b.lease.watch.heard(err)
		if temporal.IsCanceledError(err) || server.IsGone(err) {
			select {
			case b.answers <- err:
			default: // there is one already
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
		Progress: l.progress(l.key), Steps: l.services.StepTime(l.key), Usage: l.used.Load(), LastOutput: wrote,
	}
}
