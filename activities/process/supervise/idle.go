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

// wantedFile is locked by each process that wants the host worker of a state directory to stay,
// and modified at that time. A host worker that ends because it is idle locks it first and
// keeps the lock until its process has ended, so no process relies on a host worker that is
// ending.
const wantedFile = "wanted"

// Wanted is the lock that [Want] returns.
type Wanted struct{ file *os.File }

// Want keeps an idle host worker running, and other processes from starting or stopping one,
// until Close. From then on the host worker stays for as long as it would after a run.
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
	touch(w.file.Name()) // at worst the host worker ends sooner
	_ = w.file.Close()
}

// Stay keeps the host worker of a state directory for as long as it would stay after a run. The
// file may not exist yet; then the host worker has not been idle for long enough to end.
func Stay(stateDir string) { touch(filepath.Join(stateDir, wantedFile)) }

func touch(file string) {
	now := time.Now()
	_ = os.Chtimes(file, now, now)
}

const (
	// idleLooks is the number of looks within the idle time.
	idleLooks    = 20
	idleLookMost = 10 * time.Second
)

// IdleLook returns the time between looks at whether a host worker is idle that ends after a time.
func IdleLook(idleExit time.Duration) time.Duration {
	return max(10*time.Millisecond, min(idleExit/idleLooks, idleLookMost))
}

// leaving is locked by a process that ends because it is idle, and unlocked when it has ended.
var leaving atomic.Pointer[os.File]

// endWhenIdle calls end when no run has held this host for long enough.
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
