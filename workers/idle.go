package workers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Held returns the runs that have a reservation on the host worker of a state directory.
func Held(stateDir string) ([]runkey.Run, error) { return activities.Held(stateDir) }

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
	now := time.Now()
	_ = os.Chtimes(w.file.Name(), now, now) // at worst the host worker ends sooner
	_ = w.file.Close()
}

const (
	// idleLooks is the number of looks within the idle time.
	idleLooks    = 20
	idleLookMost = 10 * time.Second
)

func (o Options) idleLook() time.Duration {
	return max(10*time.Millisecond, min(o.IdleExit/idleLooks, idleLookMost))
}

// leaving is locked by a process that ends because it is idle, and unlocked when it has ended.
var leaving atomic.Pointer[os.File]

// endWhenIdle calls end when no run has held this host for long enough.
func (o Options) endWhenIdle(ctx context.Context, log *zap.Logger, end func()) {
	last := time.Now()
	look := time.NewTicker(o.idleLook())
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if o.isHeld(log) {
			last = time.Now()
			continue
		}
		if time.Since(last) < o.IdleExit {
			continue
		}
		f, err := filelock.Try(filepath.Join(o.StateDir, wantedFile))
		if err != nil {
			if !errors.Is(err, filelock.ErrLocked) {
				log.Warn("cannot tell whether runs still need this host worker; staying", zap.Error(err))
			}
			continue
		}
		info, err := f.Stat()
		// A run may have been placed since the check.
		if err != nil || time.Since(info.ModTime()) < o.IdleExit || o.isHeld(log) {
			_ = f.Close()
			continue
		}
		leaving.Store(f)
		log.Info("this host worker was idle for too long, and exits", zap.Duration("idle", o.IdleExit))
		end()
		return
	}
}

// stayForRuns keeps the host worker running while its queue has open runs without a host. It
// may be the only host that can continue them. If the server cannot be asked, it assumes so.
func (s *side) stayForRuns(ctx context.Context, c client.Client) {
	look := time.NewTicker(s.idleLook())
	defer look.Stop()
	for {
		if n, err := s.openRuns(ctx, c); err != nil || n > 0 {
			now := time.Now()
			// The file may not exist yet; then this process has not been idle for long enough
			// to end.
			_ = os.Chtimes(filepath.Join(s.StateDir, wantedFile), now, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

func (o Options) isHeld(log *zap.Logger) bool {
	held, err := activities.Held(o.StateDir)
	if err != nil {
		log.Warn("cannot tell whether this host worker has runs; staying", zap.Error(err))
	}
	return err != nil || len(held) > 0
}
