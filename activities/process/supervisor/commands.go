package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Attach announces a commander; see [API].
func (s *supervisor) Attach(ctx context.Context, r AttachRequest) (AttachReply, error) {
	run := s.lockOrAddRun(r.Key.Run)
	t := run.task(taskID{r.Key.Generation, r.Key.Task})
	if r.Fence.Less(t.fence) {
		defer s.mu.Unlock()
		return AttachReply{}, fenced(r.Key, r.Fence, t.fence)
	}
	t.fence = r.Fence
	ps := append([]*process(nil), t.processes...)
	damaged := run.damaged != "" && len(ps) == 0
	s.mu.Unlock()
	if damaged {
		return AttachReply{}, run.damageError()
	}
	var reply AttachReply
	for _, p := range ps {
		// An earlier commander may still be starting the process.
		select {
		case <-p.settled:
		case <-ctx.Done():
			return AttachReply{}, ctx.Err()
		}
		s.mu.Lock()
		if p.notMade == nil {
			reply.Processes = append(reply.Processes, p.view())
		}
		s.mu.Unlock()
	}
	return reply, nil
}

// Wait returns once a process has ended; see [API].
func (s *supervisor) Wait(ctx context.Context, r ProcessRef) (Process, error) {
	p, err := s.lockProcess(r)
	s.mu.Unlock()
	if err != nil {
		return Process{}, err
	}
	return s.await(ctx, p, p.done)
}

// Grant allows a successor to be started; see [API].
func (s *supervisor) Grant(_ context.Context, r GrantRequest) error {
	p, err := s.lockProcess(ProcessRef{Key: r.Key, Number: r.Number})
	if err == nil {
		switch t := p.task; {
		case r.Fence.Less(t.fence):
			err = fenced(r.Key, r.Fence, t.fence)
		case p.task.run.releasing && !p.Granted:
			err = fault.Refuse(ErrReleased, fmt.Sprintf("run %s was released on this host", r.Key.Run.WorkflowID))
		case p.Exit == nil:
			err = fault.Refuse(ErrAlive, fmt.Sprintf("%s: process %d is still alive", r.Key, r.Number))
		default:
			t.fence = r.Fence
		}
	}
	granted := err == nil && p.Granted
	s.mu.Unlock()
	if err != nil || granted {
		return err
	}
	// The grant is journalled before it takes effect, because a process must not be started by a
	// grant that would be lost if the supervisor restarted.
	err = p.task.run.journal.append(record{
		Type: recGranted, Generation: r.Key.Generation, Task: r.Key.Task, Number: r.Number, Failures: r.Failures, Note: r.Note,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Granted, p.Failures, p.Note = true, r.Failures, r.Note
	return nil
}

// Processes returns processes; see [API].
func (s *supervisor) Processes(_ context.Context, key runkey.Run) (ProcessesReply, error) {
	var reply ProcessesReply
	if key != (runkey.Run{}) {
		run := s.lockRun(key)
		defer s.mu.Unlock()
		if run != nil {
			reply.Processes = run.views()
		}
		return reply, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.runs {
		if run.released == nil {
			reply.Processes = append(reply.Processes, run.views()...)
		}
	}
	sortProcesses(reply.Processes)
	return reply, nil
}

// Unkept returns what a disk could not hold; see [API].
func (s *supervisor) Unkept(side context.Context) (reply UnkeptReply, _ error) {
	s.mu.Lock()
	runs := slices.Collect(maps.Values(s.runs))
	s.mu.Unlock()
	for _, r := range runs { // without the lock, because files may be on a server that is gone
		reply.Unkept = append(reply.Unkept, r.outputs.Take(side)...)
	}
	return reply, nil
}

// Controllers returns which limits can be enforced; see [API].
func (s *supervisor) Controllers(context.Context) (ControllersReply, error) {
	return s.groups.controllers, nil
}

// Hello keeps the side's version; see [API].
func (s *supervisor) Hello(_ context.Context, version string) error {
	select {
	case s.side.hello <- version:
	default: // a side in another process cannot be upgraded
	}
	return nil
}

// Serving reports that the side serves; see [API].
func (s *supervisor) Serving(context.Context) error {
	if s.cfg.Serving != nil && !s.isClosing() {
		s.cfg.Serving()
	}
	return nil
}

// Leave records that a side has nothing more to report; see [API].
func (s *supervisor) Leave(context.Context) error {
	s.side.leave()
	return nil
}

// Closing waits for the supervisor's shutdown; see [API].
func (s *supervisor) Closing(ctx context.Context) (ClosingReply, error) {
	select {
	case <-s.closing:
	case <-ctx.Done():
		return ClosingReply{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return ClosingReply{OwnerGone: s.ownerGone}, nil
}

// Release ends a run; see [API].
func (s *supervisor) Release(ctx context.Context, r ReleaseRequest) (ProcessesReply, error) {
	if err := r.check(); err != nil {
		return ProcessesReply{}, err
	}
	begun := time.Now()
	run := s.lockOrAddRun(r.Run)
	run.releasing = true
	var all []*process
	run.each(func(p *process) { all = append(all, p) })
	s.stopper.stopEach(all, r.Stops.way, begun, ReasonCollateral)
	first := run.released == nil
	if first {
		run.released = make(chan struct{})
	}
	s.mu.Unlock()
	if first {
		// A release, once requested, is carried out even if the caller is gone.
		go s.release(run, all)
	}
	select {
	case <-run.released:
	case <-ctx.Done():
		return ProcessesReply{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return ProcessesReply{Processes: run.views()}, nil
}

func (s *supervisor) release(r *run, all []*process) {
	for _, p := range all {
		<-p.settled // its start is then journalled
		<-p.done
	}
	r.ports.Free()
	err := r.journal.keep(record{Type: recReleased})
	if err == nil {
		err = r.journal.close()
	}
	if err == nil {
		err = s.state.archive(r)
	}
	s.mu.Lock()
	if err == nil {
		// From now on, the run is read from disk on request.
		delete(s.runs, r.hash)
		s.archives++
	}
	now := time.Now()
	prune := now.Sub(s.state.pruned) > time.Hour
	if prune {
		s.state.pruned = now
	}
	s.mu.Unlock()
	if err != nil {
		s.log.Error("The release of a run could not be written to the journal.", "run", r.key.WorkflowID, "error", err)
	}
	close(r.released)
	if s.cfg.SoleRun {
		s.guard.stop() // stop the guard early, because its exit takes as long as the rest of the shutdown
	}
	select {
	case s.side.emptied <- struct{}{}:
	default:
	}
	if prune {
		s.state.prune(now)
	}
}

// Lease leases ports; see [API].
func (s *supervisor) Lease(_ context.Context, r PortLeaseRequest) (PortLeaseReply, error) {
	if err := r.Check(); err != nil {
		return PortLeaseReply{}, err
	}
	defer s.guard.need() // so that it usually waits before the first process starts
	run := s.lockOrAddRun(r.Run)
	s.mu.Unlock()
	got, err := run.ports.Lease(r, ports.Run{
		Check: func(generation int) (began, lives bool, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case run.damaged != "":
				return false, false, run.damageError()
			case run.releasing:
				return false, false, fault.Refuse(ErrReleased, fmt.Sprintf("run %s was released on this host", r.Run.WorkflowID))
			case s.isClosing():
				return false, false, fault.Refuse(ErrClosing, "the supervisor is about to exit")
			}
			run.each(func(p *process) {
				lives = lives || p.phase != ended
				began = began || p.Key.Generation == generation
			})
			return began, lives, nil
		},
		Busy: func(generation int) (busy bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			run.each(func(p *process) { busy = busy || p.Key.Generation < generation && p.phase != ended })
			return busy
		},
		Journal: func(generation, group int, l ports.Lease) error {
			return run.journal.append(record{Type: recLeased, Generation: generation, Group: group, Ports: l.Any, Fixed: l.Fixed})
		},
		Lapse: s.cfg.PortsLapse, Log: s.logOf(run),
	})
	return PortLeaseReply{Ports: got}, err
}

// logOf returns a log with entries that name a run.
func (s *supervisor) logOf(r *run) *slog.Logger {
	return s.log.With("run", r.key.WorkflowID)
}
