package activities

import (
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// leases tracks the RunTask activities that hold a task on this host, and how long their processes
// have been silent.
type leases struct {
	mu       sync.Mutex
	attached map[runkey.Task]*held // by task
	nudge    chan struct{}         // wakes the reconciler
	ended    chan struct{}         // has an element after a lease was released
	silences sync.Map              // from runkey.Task to whether it is silent
	// acted contains each taskGroup for which on_silence was carried out since the group's last
	// sign of life.
	acted sync.Map
}

// held is a task's lease.
type held struct {
	calls int           // RunTask calls that hold it
	stop  chan struct{} // receives when the run stops the task
}

func newLeases() *leases {
	return &leases{attached: map[runkey.Task]*held{}, nudge: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
}

// taskGroup identifies a run's tasks of one generation on this host.
type taskGroup struct {
	run        runkey.Run
	generation int
}

func groupOf(k runkey.Task) taskGroup { return taskGroup{run: k.Run, generation: k.Generation} }

// attach takes a lease. The returned channel receives when the run stops the task.
func (l *leases) attach(k runkey.Task) (stop <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.attached[k]
	if h == nil {
		h = &held{stop: make(chan struct{}, 1)}
		l.attached[k] = h
	}
	h.calls++
	return h.stop
}

// stop stops a task if it is leased.
func (l *leases) stop(k runkey.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.attached[k]; h != nil {
		signal(h.stop)
	}
}

// detach releases a lease. ended reports whether the process has exited. If it is false, detach
// wakes the reconciler, because the run may have been closed.
func (l *leases) detach(k runkey.Task, ended bool) {
	l.mu.Lock()
	if h := l.attached[k]; h.calls > 1 {
		h.calls--
	} else {
		delete(l.attached, k)
		l.silences.Delete(k)
	}
	l.mu.Unlock()
	if len(l.attachedTo(k)) == 0 {
		l.acted.Delete(groupOf(k))
	}
	if !ended {
		signal(l.nudge)
	}
	signal(l.ended)
}

// signal sends to a channel unless it already has an element.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *leases) isAttached(k runkey.Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attached[k] != nil
}

// count returns the number of leased tasks.
func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.attached)
}

// attachedTo returns the leased tasks on this host with the same run and generation as a task.
func (l *leases) attachedTo(of runkey.Task) (keys []runkey.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.attached {
		if k.Run == of.Run && k.Generation == of.Generation {
			keys = append(keys, k)
		}
	}
	return keys
}

// stillSilent returns the silent tasks in k's group, sorted.
func (l *leases) stillSilent(k runkey.Task) (tasks []string) {
	for _, k := range l.attachedTo(k) {
		if silent, ok := l.silences.Load(k); ok && silent.(bool) {
			tasks = append(tasks, k.Task)
		}
	}
	slices.Sort(tasks)
	return tasks
}

// holdsAny reports whether a task in the run holds a lease on this host. If so, the run need not
// be looked up on the server: the lease is notified when the run ends, and its release triggers
// another check.
func (l *leases) holdsAny(p *plan) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.attached {
		if k.Run == p.Run && k.Generation == p.Generation {
			return true
		}
	}
	return false
}
