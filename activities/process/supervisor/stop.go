package supervisor

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// StopRequest stops a run's living processes. It sends Signal to the program and then to what the
// program leaves running or, if the command requires it, to the whole group immediately, and
// SIGKILL after Grace. A second request may shorten the first one's grace, but not lengthen it or
// change its reason. It also shortens the grace of processes that an exited program left running,
// which the reply does not mention. The reply comes immediately; use Wait for the exit.
type StopRequest struct {
	Run runkey.Run
	// Tasks limits the request to the living processes of these tasks, in Generation. nil means
	// every task of the run.
	Tasks      []string
	Generation int
	// Processes, if not nil, instead limits the request to exactly these processes, excluding their
	// successors.
	Processes []ProcessRef
	// Signal is the signal's number. SIGKILL does not need a grace.
	Signal int
	Grace  time.Duration
	Reason Reason
	// Detail is recorded in the exits of those processes that no earlier request has stopped.
	Detail string
	// Failed is also recorded in these exits. It reports that the processes have failed but not yet
	// ended.
	Failed bool
	// Fence, if not nil, must not be older than the task's fence in Generation. It limits the
	// request to Generation, because each generation counts its own attempts.
	Fence *Fence
}

// SignalRequest sends one signal to the programs of the named tasks in a generation, but not to
// their helpers, which the signal would often kill. SIGKILL, SIGSTOP and SIGCONT, which programs
// cannot handle, are sent to the groups.
type SignalRequest struct {
	Run        runkey.Run
	Tasks      []string
	Generation int
	Signal     int
}

// Stop stops processes; see [API].
func (s *supervisor) Stop(_ context.Context, r StopRequest) (TasksReply, error) {
	if err := checkSignal(r.Signal); err != nil {
		return TasksReply{}, err
	}
	deadline := time.Now().Add(r.Grace) // one for the whole request
	s.lifeline.catchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	var chosen []*process
	if run := s.runs[runHash(r.Run)]; run != nil {
		if err := run.checkFence(r); err != nil {
			return TasksReply{}, err
		}
		run.each(func(p *process) {
			if r.names(p) {
				chosen = append(chosen, p)
			}
		})
	}
	if s.later == nil || r.Reason != ReasonCollateral || r.Signal == int(unix.SIGKILL) {
		first := slices.DeleteFunc(slices.Clone(chosen), func(p *process) bool { return p.reason != ReasonNone })
		reached := s.stopper.stop(chosen, syscall.Signal(r.Signal), deadline, r.Reason, r.Failed)
		for _, p := range first {
			if p.reason != ReasonNone {
				p.detail = r.Detail
			}
		}
		return TasksReply{Tasks: namesOf(reached)}, nil
	}
	var reached []*process
	for _, p := range chosen {
		sig := syscall.Signal(s.later(p.Key.Task).Signal)
		reached = append(reached, s.stopper.stop([]*process{p}, sig, deadline, r.Reason, r.Failed)...)
	}
	return TasksReply{Tasks: namesOf(reached)}, nil
}

// names reports whether the request applies to a process.
func (r StopRequest) names(p *process) bool {
	if r.Processes != nil {
		return slices.Contains(r.Processes, ProcessRef{Key: p.task.key(), Number: p.Number})
	}
	return r.reaches(p.task.id)
}

// reaches reports whether the request applies to a task.
func (r StopRequest) reaches(id taskID) bool {
	if r.Tasks == nil {
		return r.Fence == nil || r.Generation == id.generation
	}
	return r.Generation == id.generation && slices.Contains(r.Tasks, id.name)
}

func (r *run) checkFence(req StopRequest) error {
	if req.Fence == nil {
		return nil
	}
	for id, t := range r.tasks {
		if req.reaches(id) && req.Fence.Less(t.fence) {
			return fenced(t.key(), *req.Fence, t.fence)
		}
	}
	return nil
}

func checkSignal(n int) error {
	if n < 1 || n > 64 {
		return fault.Refuse(ErrInvalid, fmt.Sprintf("%d is not a signal", n))
	}
	return nil
}

// Signal sends one signal; see [API].
func (s *supervisor) Signal(_ context.Context, r SignalRequest) (TasksReply, error) {
	if err := checkSignal(r.Signal); err != nil {
		return TasksReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var reached []*process
	if run := s.runs[runHash(r.Run)]; run != nil {
		run.each(func(p *process) {
			if r.Generation == p.Key.Generation && slices.Contains(r.Tasks, p.Key.Task) && s.stopper.lives(p) && p.phase == running {
				if !slices.Contains(p.sent, r.Signal) {
					p.sent = append(p.sent, r.Signal)
				}
				switch sig := syscall.Signal(r.Signal); sig {
				case unix.SIGKILL, unix.SIGSTOP, unix.SIGCONT:
					s.stopper.signalGroup(p, sig)
				default:
					s.stopper.send(p.PID, sig)
				}
				reached = append(reached, p)
			}
		})
	}
	return TasksReply{Tasks: namesOf(reached)}, nil
}

func namesOf(ps []*process) []string {
	names := list.Of(ps, func(p *process) string { return p.Key.Task })
	slices.Sort(names)
	return slices.Compact(names)
}
