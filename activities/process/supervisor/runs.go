package supervisor

import (
	"fmt"
	"strings"
	"sync"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// table holds this host's runs and their processes.
//
// mu guards it. The disk must not be used while mu is held. Journals and ports have their own
// locks. mu may be acquired while these or the forker's window are held, but never the other way
// round. The side's and the guard's locks may be acquired while mu is held.
type table struct {
	state *State

	mu   sync.Mutex
	runs map[string]*run
	// archives counts the runs deleted from runs, which are only on disk.
	archives int
	living   map[int]*process // by the leader's pid, until it is reaped
	// closing is closed when starts are no longer allowed.
	closing chan struct{}
}

func newTable(state *State) *table {
	return &table{state: state, runs: state.runs, living: make(map[int]*process), closing: make(chan struct{})}
}

// lockRun locks t.mu and returns a run, which may have been released and be only on disk, or nil if
// this host never had the run. The disk may hang, so lockRun reads it before it locks t.mu.
func (t *table) lockRun(key runkey.Run) *run {
	hash := runHash(key)
	t.mu.Lock()
	r := t.runs[hash]
	for r == nil {
		before := t.archives
		if before == 0 && t.state.fresh {
			return nil
		}
		t.mu.Unlock()
		archived := t.state.archived(hash)
		t.mu.Lock()
		if r = t.runs[hash]; r != nil || archived == nil && t.archives != before {
			continue // while mu was unlocked, the run was added, or may have been added and archived
		}
		if r = archived; r == nil {
			return nil
		}
	}
	if r.key == (runkey.Run{}) {
		r.key = key // its journal lost the line with the key
	}
	return r
}

// lockOrAddRun is like lockRun, but adds the run if it is missing.
func (t *table) lockOrAddRun(key runkey.Run) *run {
	if r := t.lockRun(key); r != nil {
		return r
	}
	hash := runHash(key)
	r := newRun(hash, key)
	r.journal = newJournal(t.state.journalPath(hash), key)
	r.journal.volatile = t.state.volatile
	t.runs[hash] = r
	return r
}

// lockProcess locks t.mu and looks up a process.
func (t *table) lockProcess(ref ProcessRef) (*process, error) {
	run := t.lockRun(ref.Key.Run)
	if run != nil {
		of := run.tasks[taskID{ref.Key.Generation, ref.Key.Task}]
		if of != nil {
			if p := of.process(ref.Number); p != nil {
				return p, nil
			}
		}
		if run.damaged != "" {
			return nil, run.damageError()
		}
	}
	return nil, fault.Refuse(ErrUnknownProcess, fmt.Sprintf("%s has no process %d on this host", ref.Key, ref.Number))
}

func (t *table) isClosing() bool {
	select {
	case <-t.closing:
		return true
	default:
		return false
	}
}

// pick returns the living processes that f picks. mu must be held.
func (t *table) pick(f func(*process) bool) []*process {
	var out []*process
	for _, r := range t.runs {
		r.each(func(p *process) {
			if p.phase != ended && f(p) {
				out = append(out, p)
			}
		})
	}
	return out
}

// byCookie finds a process. t.mu must be held.
func (t *table) byCookie(cookie string) *process {
	parts := strings.Split(cookie, "/")
	if len(parts) < 5 {
		return nil
	}
	r := t.runs[parts[1]]
	if r == nil {
		return nil
	}
	var found *process
	r.each(func(p *process) {
		if p.cookie == cookie {
			found = p
		}
	})
	return found
}

// closeIfIdle makes the table refuse new requests if all runs, and with them all processes and
// ports, are released. It reports whether it did so.
func (t *table) closeIfIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.runs) > 0 || len(t.living) > 0 || t.isClosing() {
		return false
	}
	close(t.closing)
	return true
}
