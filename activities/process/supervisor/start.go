package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Start journals and starts a process; see [API].
func (s *supervisor) Start(ctx context.Context, r StartRequest) (Process, error) {
	if err := checkStart(r); err != nil {
		return Process{}, err
	}
	p, mine, err := s.admit(r)
	if err != nil {
		return Process{}, err
	}
	if mine {
		s.make(p, r)
		s.starts.Done()
	}
	// The first request starts the process; further requests get the same outcome.
	return s.await(ctx, p, p.settled)
}

// await returns the process once closed is closed.
func (s *supervisor) await(ctx context.Context, p *process, closed <-chan struct{}) (Process, error) {
	select {
	case <-closed:
	case <-ctx.Done():
		return Process{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.notMade != nil {
		return Process{}, p.notMade
	}
	return p.view(), nil
}

func checkStart(r StartRequest) error {
	switch {
	case r.Key.Task == "" || strings.ContainsFunc(r.Key.Task, func(c rune) bool { return c <= ' ' || c == '/' }):
		return fault.Refuse(ErrInvalid, fmt.Sprintf("%q is not a task name", r.Key.Task))
	case r.Number < 0:
		return fault.Refuse(ErrInvalid, fmt.Sprintf("process number %d is negative", r.Number))
	case !filepath.IsAbs(r.Command.Path):
		return fault.Refuse(ErrInvalid, fmt.Sprintf("the program %q is not an absolute path", r.Command.Path))
	case len(r.Command.Args) == 0:
		return fault.Refuse(ErrInvalid, "the command has no arguments, not even the program's name")
	}
	return nil
}

// admit returns the requested process, which may be new. mine reports whether the caller must call
// make and then starts.Done.
func (s *supervisor) admit(r StartRequest) (p *process, mine bool, err error) {
	run := s.lockOrAddRun(r.Key.Run)
	defer s.mu.Unlock()
	id := taskID{r.Key.Generation, r.Key.Task}
	t := run.task(id)
	if r.Fence.Less(t.fence) {
		return nil, false, fenced(r.Key, r.Fence, t.fence)
	}
	t.fence = r.Fence
	if p := t.process(r.Number); p != nil {
		return p, false, nil
	}
	switch {
	case run.damaged != "":
		return nil, false, run.damageError()
	case run.releasing:
		return nil, false, fault.Refuse(ErrReleased, fmt.Sprintf("run %s was released on this host", r.Key.Run.WorkflowID))
	case s.isClosing():
		return nil, false, fault.Refuse(ErrClosing, "the supervisor is about to exit")
	case r.Contact.over(BootNanos()):
		return nil, false, fault.Refuse(ErrCutOff, fmt.Sprintf("%s: the Temporal server did not answer for it in time", r.Key))
	case r.Key.Generation < run.newest:
		return nil, false, fault.Refuse(ErrFenced, fmt.Sprintf("%s: start %d of the run is over; start %d has begun", r.Key, r.Key.Generation, run.newest))
	case r.Number != t.next:
		return nil, false, fault.Refuse(ErrInvalid, fmt.Sprintf("%s: process %d cannot be started; the next one is %d", r.Key, r.Number, t.next))
	}
	for other, its := range run.tasks {
		if other.name != id.name {
			continue
		}
		for _, q := range its.processes {
			if q.Exit == nil {
				return nil, false, fault.Refuse(ErrAlive, fmt.Sprintf("%s: process %d of start %d of the run is still alive (pid %d)", r.Key, q.Number, other.generation, q.PID))
			}
			if left := q.Exit.Survivors(); len(left) > 0 {
				return nil, false, fault.Refuse(ErrRemains, fmt.Sprintf("%s cannot be started again until SIGKILL ends its process %d", r.Key.Task, left[0].PID))
			}
		}
	}
	if n := len(t.processes); n > 0 {
		if last := t.processes[n-1]; !last.Granted && r.Fence.Launch <= last.Launch {
			return nil, false, fault.Refuse(ErrNotGranted, fmt.Sprintf("%s: process %d has exited and may not be restarted", r.Key, last.Number))
		}
	}
	p = newProcess(t, r.Number, r.Fence.Launch)
	p.LogDir, p.killAt, p.boot = r.Command.LogDir, r.Command.KillAt, s.state.boot
	p.contact, p.limits, p.stop = r.Contact, r.Command.Limits, r.Command.Stop
	p.toGroup, p.oomFails = r.Command.StopGroup, r.Command.OOMFails
	if r.Command.User != nil {
		p.User = r.Command.User.Name
	}
	p.cookie = cookieOf(s.state.instance, run.hash, r.Key, r.Number)
	t.enter(p)
	run.begin(r.Key.Generation)
	run.touched = time.Now()
	s.starts.Add(1)
	return p, true, nil
}

func fenced(key runkey.Task, got, seen Fence) error {
	return fault.Refuse(ErrFenced, fmt.Sprintf("%s: %s was superseded by %s", key, got, seen))
}

// make carries out a start. Afterwards, the process runs, has an exit with a StartError or, if the
// journal could not be written, does not exist.
func (s *supervisor) make(p *process, r StartRequest) {
	journal := p.task.run.journal
	entry := record{Generation: p.Key.Generation, Task: p.Key.Task, Number: p.Number}
	begin := entry
	begin.Type, begin.Fence, begin.LogDir, begin.User, begin.Boot = recStarting, &r.Fence, p.LogDir, p.User, p.boot
	err := journal.append(begin)
	if err == nil {
		if err = journal.commit(); err != nil {
			// The start may be on disk. If this record also cannot be written and the supervisor
			// dies, the process counts as lost, never as not started.
			abort := entry
			abort.Type = recAborted
			_ = journal.keep(abort)
		}
	}
	if err != nil {
		s.log.Error("A process was not started because the journal cannot be written.", "task", p.Key, "error", err)
		s.mu.Lock()
		p.task.takeBack(p)
		p.notMade, p.phase = err, ended
		stopTimer(p.killTimer)
		s.mu.Unlock()
		close(p.settled)
		close(p.done)
		return
	}
	p.task.run.ports.Keep(p.Key.Generation, s.logOf(p.task.run))

	if err := s.launcher.launch(p, r.Command); err != nil {
		s.startFailed(p, err)
		close(p.settled)
		return
	}
	begun := entry
	begun.Type, begun.PID, begun.Ticks, begun.At = recStarted, p.PID, p.ticks, p.Started
	if err := journal.keep(begun); err != nil {
		s.log.Warn("The start of a process could not be written to the journal yet.", "task", p.Key, "error", err)
	}
	close(p.settled)
	// It may have exited before it was in the table, so that its SIGCHLD was ignored.
	if zombie(p.PID) {
		s.reaper.wake()
	}
}

func (s *supervisor) startFailed(p *process, err error) {
	exit := &Exit{Code: fault.CodeOf(err), StartError: err.Error(), Ended: time.Now().UTC(), BootNanos: BootNanos()}
	if se, ok := errors.AsType[*fault.Start](err); ok {
		exit.Code = se.Code
	}
	s.mu.Lock()
	p.phase = ended
	stopTimer(p.killTimer)
	s.mu.Unlock()
	s.recordExit(p, exit)
}
