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

// Held returns the runs that have reserved the host worker with a state directory and not
// given it back.
func Held(stateDir string) ([]runkey.Run, error) { return activities.Held(stateDir) }

// wantedFile is locked by whoever wants the host worker of a state directory to be there, and
// modified at that time. A host worker that ends for want of runs locks it first, and keeps it
// locked until its process has ended: nobody relies on one that is about to leave.
const wantedFile = "wanted"

// Wanted is the lock that [Want] returns.
type Wanted struct{ file *os.File }

// Want keeps the host worker of a state directory from ending for want of runs, and others
// from starting or stopping one, until it is closed. From then on the host worker stays for
// as long as it would stay after a run.
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

// Close lets others have the lock.
func (w *Wanted) Close() {
	now := time.Now()
	_ = os.Chtimes(w.file.Name(), now, now) // at worst the host worker ends sooner
	_ = w.file.Close()
}

const (
	// The time between looks is a part of what is waited for.
	idleLooks    = 20
	idleLookMost = 10 * time.Second
)

func (o Options) idleLook() time.Duration {
	return max(10*time.Millisecond, min(o.IdleExit/idleLooks, idleLookMost))
}

// leaving is locked by a process that ends for want of runs, and unlocked by its end.
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
				log.Warn("whether this host worker is wanted is not known", zap.Error(err))
			}
			continue
		}
		info, err := f.Stat()
		// One may have been placed since we looked.
		if err != nil || time.Since(info.ModTime()) < o.IdleExit || o.isHeld(log) {
			_ = f.Close()
			continue
		}
		leaving.Store(f)
		log.Info("no run for so long: this host worker ends", zap.Duration("idle", o.IdleExit))
		end()
		return
	}
}

// stayForRuns has the host worker stay while a run of its queue is open that has no host yet,
// or none for now: it may be the only one that goes on with it. What cannot be known counts as
// a run.
func (s *side) stayForRuns(ctx context.Context, c client.Client) {
	look := time.NewTicker(s.idleLook())
	defer look.Stop()
	for {
		if n, err := s.openRuns(ctx, c); err != nil || n > 0 {
			now := time.Now()
			// Before there is a file, this process has not been idle for long enough.
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
		log.Warn("whether this host worker has runs is not known", zap.Error(err))
	}
	return err != nil || len(held) > 0
}
