package activities

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/tasklog"
	server "github.com/clusterrun/clusterrun/activities/temporal"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Heartbeats say that a task's lease is held, and where its process is; with each
// the host notes how far the output of the process has got ([tasklog.Times]). A
// cancellation that the server could not push is learnt from their answers, so
// small runs beat often and large ones spare the server, and the host, which
// has 32 beats a second at most.
const (
	minBeat = time.Second
	// beatPatience is how long the server may take to answer one.
	beatPatience = 5 * time.Second
	// firstBeat is how soon people see the pid. Not at once: a heartbeat costs the
	// server as much as the start of a task, and while a run is being launched it
	// has better things to do.
	firstBeat = 300 * time.Millisecond
	// manyTasks is where runs are large: their first beats are spread out, too.
	manyTasks = 32
)

// beatInterval returns the time between two beats of a task, of that many in the run. Two
// in a row may be lost.
func beatInterval(tasks int, timeout time.Duration) time.Duration {
	return min(max(time.Duration(tasks)*time.Second/manyTasks, minBeat), timeout*2/5)
}

// untilBeat returns an interval that ends on a whole second and the phase of the host: the
// beats of a host come together, a crowd a second, which wakes it up far less often than
// beats that come one by one.
func untilBeat(now time.Time, interval, phase time.Duration) time.Duration {
	return now.Add(interval - phase).Truncate(time.Second).Add(phase).Sub(now)
}

// phaseOf returns the phase of a host worker: the crowds of many hosts do not come to the
// server at the same moment.
func phaseOf(instance string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance))
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// beater beats for one lease. Each beat has a goroutine of its own for as long
// as it takes: one that stayed would keep the deep stack of a call.
type beater struct {
	lease    *taskLease
	process  supervisor.Process
	due      *time.Timer
	interval time.Duration
	phase    time.Duration
	times    *tasklog.Times
	// answers has what the server said where that means something; a server that
	// is away for a while means nothing.
	answers chan error
	beating chan struct{} // holds an element during a beat
}

func (l *taskLease) newBeater(p supervisor.Process) *beater {
	tasks := len(l.plan.Cluster.Members)
	b := &beater{
		lease: l, process: p, interval: l.plan.hurry(beatInterval(tasks, activity.GetInfo(l.ctx).HeartbeatTimeout)), phase: phaseOf(l.Instance), times: tasklog.NewTimes(p.LogDir),
		answers: make(chan error, 1), beating: make(chan struct{}, 1),
	}
	first := firstBeat
	if tasks > manyTasks {
		first += rand.N(b.interval) //nolint:gosec // no secret: beats are to spread
	}
	b.due = time.NewTimer(first)
	return b
}

func (b *beater) stop() { b.due.Stop() }

// beat sends one heartbeat, unless the one before is still on its way.
func (b *beater) beat(ctx context.Context) {
	b.due.Reset(untilBeat(time.Now(), b.interval, b.phase))
	select {
	case b.beating <- struct{}{}:
	default:
		return
	}
	// On its own: a file system that hangs must keep neither the heartbeat nor the end of
	// the host.
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
		if b.lease.mustAct() {
			go b.lease.actOnSilence(ctx, b.process) // no heartbeat waits for that, nor the end of the host
		}
		sent := supervisor.BootNanos()
		err := b.lease.Server.RecordActivityHeartbeat(beating, b.lease.token, b.lease.details(b.process))
		if server.IsContact(err) {
			b.lease.inContact(ctx, sent)
		}
		b.lease.heard(err)
		if temporal.IsCanceledError(err) || server.IsGone(err) {
			select {
			case b.answers <- err:
			default: // there is one already
			}
		}
	})
}

// details returns what people see of a process while it runs.
func (l *taskLease) details(p supervisor.Process) spec.Heartbeat {
	return spec.Heartbeat{
		PID: p.PID, Host: l.Name, Restarts: l.restarts, Started: p.Started, LogDir: l.told(l.plan, p.LogDir),
		Progress: l.progress(l.key), Usage: l.used.Load(),
	}
}
