package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// sweepPlan identifies the processes that a dead supervisor may have left.
type sweepPlan struct {
	instance string
	// sessions holds the leaders without an exit, with their start ticks.
	sessions map[int]uint64
	// lastSign is when the supervisor was last known to be alive, in clock ticks. If a session's
	// leader is gone, only processes started before then count as part of it, because its number
	// may be reused later.
	lastSign uint64
	cgroup   string // the instance's cgroup, if any
	bound    time.Duration
}

type sweepResult struct {
	killed int
	// left holds the processes that are still alive at the end.
	left map[int]bool
}

// ticksPerSecond is USER_HZ, which Linux keeps at 100 for user space.
const ticksPerSecond = 100

func (s *State) sweepPlan(lastSign time.Time) sweepPlan {
	plan := sweepPlan{instance: s.instance, sessions: make(map[int]uint64), bound: DefaultKillBound}
	for _, r := range s.runs {
		r.each(func(p *process) {
			if p.Exit == nil && p.PID != 0 && p.boot == s.boot {
				plan.sessions[p.PID] = p.ticks
			}
		})
	}
	// Add a second for the resolution of file times.
	ago := time.Since(lastSign) - time.Second
	if now := BootNanos(); now > int64(ago) {
		plan.lastSign = uint64((now - int64(ago)) / (int64(time.Second) / ticksPerSecond))
	}
	plan.cgroup = cgroup.Recorded(filepath.Join(s.dir, cgroupFile), s.boot)
	return plan
}

// sweepHost kills what a dead supervisor left: every process with a cookie of the instance, in a
// recorded session, or in its cgroup. It repeats until it finds none, because a process may fork
// just before it is killed.
//
// It polls, quickly at first, because only a parent is notified of an exit.
func sweepHost(ctx context.Context, plan sweepPlan) sweepResult {
	result := sweepResult{left: make(map[int]bool)}
	seen := make(map[int]bool)
	deadline := time.Now().Add(plan.bound)
	pause := time.Millisecond
	for {
		if plan.cgroup != "" {
			cgroup.Kill(plan.cgroup)
		}
		victims := plan.find()
		for pid, ticks := range victims {
			if !seen[pid] {
				seen[pid] = true
				result.killed++
			}
			proc.Signal(pid, ticks, unix.SIGKILL)
		}
		if len(victims) == 0 && (plan.cgroup == "" || !cgroup.Populated(plan.cgroup)) {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			for pid := range victims {
				result.left[pid] = true
			}
			break
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
	if plan.cgroup != "" {
		cgroup.Remove(plan.cgroup)
	}
	return result
}

// find returns the living processes to kill, with their start ticks.
func (plan sweepPlan) find() map[int]uint64 {
	victims := make(map[int]uint64)
	pids, err := proc.PIDs()
	if err != nil {
		return victims
	}
	self := os.Getpid()
	for _, pid := range pids {
		if pid == self {
			continue
		}
		stat, err := proc.ReadStat(pid)
		if err != nil || stat.Dead() {
			continue
		}
		cookie := ofInstance(readCookies(pid), plan.instance)
		if cookie != "" && cookie != sideCookie(plan.instance) || plan.inSession(stat) {
			victims[pid] = stat.Ticks
		}
	}
	return victims
}

func (plan sweepPlan) inSession(stat proc.Stat) bool {
	ticks, recorded := plan.sessions[stat.Session]
	if !recorded || stat.Ticks < ticks {
		return false
	}
	leader, err := proc.ReadStat(stat.Session)
	if err == nil {
		return leader.Ticks == ticks
	}
	return stat.Ticks <= plan.lastSign
}

// sweepAfterLoss kills every process that a dead supervisor left and returns their number. Both the
// side and the guard call it, since either may be killed together with the supervisor. If the next
// supervisor already holds the state directory, it has done this.
func sweepAfterLoss(ctx context.Context, dir string, dead int) (int, error) {
	lock, err := lockBehind(ctx, dir, dead)
	if err != nil || lock == nil {
		return 0, err
	}
	defer lock.Close()
	s := &State{dir: dir}
	if s.boot, err = bootID(); err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, instanceFile))
	if err != nil {
		return 0, fmt.Errorf("cleaning up after the loss of the supervisor: %w", err)
	}
	s.instance = strings.TrimSpace(string(raw))
	s.runs = make(map[string]*run)
	err = eachJournal(dir, openJournal, func(path, hash string) error {
		if r, _, err := loadJournal(path, hash); err == nil {
			s.runs[hash] = r
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cleaning up after the loss of the supervisor: %w", err)
	}
	result := sweepHost(ctx, s.sweepPlan(time.Now()))
	if len(result.left) > 0 {
		return result.killed, fmt.Errorf("%d processes are still alive after SIGKILL: %v", len(result.left), slices.Sorted(maps.Keys(result.left)))
	}
	return result.killed, nil
}

// lockBehind takes a dying supervisor's lock, which may be released shortly after its socket
// closes. If another process is sweeping, lockBehind waits. It returns nil without an error if
// another supervisor has taken over.
func lockBehind(ctx context.Context, dir string, dead int) (*os.File, error) {
	deadline := time.Now().Add(sweepPatience)
	for {
		lock, err := tryLock(dir, roleSweep)
		if !errors.Is(err, filelock.ErrLocked) {
			return lock, err
		}
		pid, role := holder(dir)
		if role == roleSupervisor && pid != dead {
			return nil, nil
		}
		if time.Now().After(deadline) {
			return nil, inUse(dir, pid, role)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}
