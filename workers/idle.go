package workers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// wantedFile is locked by each process that starts, stops or relies on a state directory's host
// worker. Before an idle host worker exits, it writes its supervisor's process ID into the file, so
// no process relies on it while it exits.
const wantedFile = "wanted"

const (
	wantedEvery = 5 * time.Millisecond
	// idleLooks is the number of idle checks per idle period.
	idleLooks    = 20
	idleLookMost = 10 * time.Second
)

// Want keeps an idle host worker running until release is called, and prevents other processes from
// starting or stopping one. After release, the host worker keeps running as long as after a run. If
// the host worker is already exiting, Want waits until it is gone.
func Want(ctx context.Context, stateDir string) (release func(), err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Wait(ctx, filelock.Try, filepath.Join(stateDir, wantedFile), wantedEvery)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(lock.Name())
	if pid, _ := strconv.Atoi(string(text)); err == nil && pid != 0 && pid == supervisor.Holder(stateDir) {
		err = supervisor.RequestEnd(ctx, stateDir, pid)
	}
	if err = errors.Join(err, lock.Truncate(0)); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = os.Chtimes(lock.Name(), time.Time{}, time.Now()) // at worst the host worker exits sooner
		_ = lock.Close()
	}, nil
}

// exitWhenIdle stops the host worker after IdleExit without runs.
func (s *side) exitWhenIdle(ctx context.Context) {
	look := time.NewTicker(max(10*time.Millisecond, min(s.IdleExit/idleLooks, idleLookMost)))
	defer look.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if s.isNeeded(ctx) {
			last = time.Now()
			continue
		}
		if time.Since(last) < s.IdleExit {
			continue
		}
		if err := s.exitUnlessWanted(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, filelock.ErrLocked) {
			s.log.Warn("cannot tell whether runs still need this host worker; keeping it running", zap.Error(err))
		}
	}
}

// HeldRuns returns the runs that reserve a state directory's host worker.
func HeldRuns(stateDir string) ([]runkey.Run, error) { return activities.HeldRuns(stateDir) }

// isNeeded reports whether this host has runs or its queue has open runs, which perhaps only this
// host can continue. It returns true if the server is unreachable.
func (s *side) isNeeded(ctx context.Context) bool {
	held, err := activities.HeldRuns(s.StateDir)
	runs := int64(len(held))
	if err == nil && runs == 0 && s.Role.servesWorkflows() {
		runs, err = s.openRuns(ctx, s.client)
	}
	return err != nil || runs > 0
}

// exitUnlessWanted makes the supervisor exit unless a process relies on it, and waits until the
// supervisor has exited.
func (s *side) exitUnlessWanted(ctx context.Context) error {
	lock, err := filelock.Try(filepath.Join(s.StateDir, wantedFile))
	if err != nil {
		return err
	}
	defer lock.Close()
	info, err := lock.Stat()
	// A run may have been placed since the check.
	if err != nil || time.Since(info.ModTime()) < s.IdleExit || s.isNeeded(ctx) {
		return err
	}
	pid := supervisor.Holder(s.StateDir)
	if pid == 0 {
		return nil // the supervisor is already exiting
	}
	if err := os.WriteFile(lock.Name(), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return err
	}
	s.log.Info("this host worker was idle for too long; exiting", zap.Duration("idle", s.IdleExit))
	return supervisor.RequestEnd(ctx, s.StateDir, pid)
}
