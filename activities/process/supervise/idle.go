package supervise

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/plans"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// wantedFile is locked and touched by each process that needs a state directory's host worker to
// stay. An idle host worker locks it before exiting and keeps the lock until its process is gone,
// so no process relies on an exiting host worker.
const wantedFile = "wanted"

// Wanted is the lock that [Want] returns.
type Wanted struct{ file *os.File }

// Want keeps an idle host worker running, and other processes from starting or stopping one, until
// Close. After that the host worker stays as long as after a run.
func Want(ctx context.Context, stateDir string) (*Wanted, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, err
	}
	for wait := (retry.Backoff{First: 5 * time.Millisecond, Most: 100 * time.Millisecond}); ; {
		f, err := filelock.Try(filepath.Join(stateDir, wantedFile))
		if err == nil {
			return &Wanted{f}, nil
		}
		if !errors.Is(err, filelock.ErrLocked) {
			return nil, err
		}
		if err := wait.Sleep(ctx); err != nil {
			return nil, err
		}
	}
}

// Close releases the lock.
func (w *Wanted) Close() {
	touch(w.file.Name()) // at worst the host worker exits sooner
	_ = w.file.Close()
}

// Stay keeps a state directory's host worker as long as after a run. The file may not exist yet;
// then the host worker has not been idle long enough to exit.
func Stay(stateDir string) { touch(filepath.Join(stateDir, wantedFile)) }

func touch(file string) {
	now := time.Now()
	_ = os.Chtimes(file, now, now)
}

const (
	// idleLooks is the number of looks per idle time.
	idleLooks    = 20
	idleLookMost = 10 * time.Second
)

// IdleLook returns the interval between looks at whether a host worker is idle.
func IdleLook(idleExit time.Duration) time.Duration {
	return max(10*time.Millisecond, min(idleExit/idleLooks, idleLookMost))
}

// leaving is locked by an exiting idle process, and unlocked when it is gone.
var leaving atomic.Pointer[os.File]

// endWhenIdle calls end when this host has been without runs long enough.
func (s Settings) endWhenIdle(ctx context.Context, log *slog.Logger, end func()) {
	last := time.Now()
	look := time.NewTicker(IdleLook(s.IdleExit))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if s.isHeld(log) {
			last = time.Now()
			continue
		}
		if time.Since(last) < s.IdleExit {
			continue
		}
		f, err := filelock.Try(filepath.Join(s.StateDir, wantedFile))
		if err != nil {
			if !errors.Is(err, filelock.ErrLocked) {
				log.Warn("cannot tell whether runs still need this host worker; staying", "error", err)
			}
			continue
		}
		info, err := f.Stat()
		// A run may have been placed since the check.
		if err != nil || time.Since(info.ModTime()) < s.IdleExit || s.isHeld(log) {
			_ = f.Close()
			continue
		}
		leaving.Store(f)
		log.Info("this host worker was idle for too long, and exits", "idle", s.IdleExit)
		end()
		return
	}
}

func (s Settings) isHeld(log *slog.Logger) bool {
	held, err := plans.Held(s.StateDir)
	if err != nil {
		log.Warn("cannot tell whether this host worker has runs; staying", "error", err)
	}
	return err != nil || len(held) > 0
}
