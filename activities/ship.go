package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

const (
	// sweepEvery is the interval between sweeps of the store. askEvery is the interval between
	// requests that ask the server whether the runs that fetch archives from this host have ended.
	sweepEvery, askEvery = 10 * time.Second, 5 * time.Minute
	// startTakes is the maximum time from an archive's arrival to the start of its run.
	startTakes = time.Hour
	// tellEvery is the time between progress reports while an archive is fetched.
	tellEvery = 2 * time.Second
)

// bring fetches the run's archive and unpacks it into the run's directory on this host, which then
// belongs to the user. A sweep cannot remove the directory before unlock is called; by then, the
// run must have a plan.
func (sh *shipping) bring(ctx context.Context, run runkey.Run, in hostapi.ReserveInput, statement string, user *hostuser.User) (unlock func(), err error) {
	a := in.Spec.Ship.Archive
	if !in.Spec.Ships() {
		return func() {}, nil
	}
	if a == nil {
		return nil, refusedSpec([]spec.Problem{{
			Path: "ship", Message: "the directory has not been packed", Remedy: "start the run with `clusterrun run` or `clusterrun submit`, which pack it",
		}})
	}
	var now atomic.Pointer[spec.Fetching]
	now.Store(&spec.Fetching{Host: sh.Name, Size: int64(a.Size)})
	done := make(chan struct{})
	defer close(done)
	go tellHowFar(ctx, &now, done)
	if unlock, err = sh.shipped.Lock(ctx, a.Digest); err != nil {
		return nil, err
	}
	as := shipped.Unpacked{Run: sh.ownerOf(run, in.Spec), Digest: a.Digest, Statement: statement}
	if root := sh.logRoot(in.Spec); root != spec.NullDir {
		as.Logs = tasklog.RunDir(root, run.WorkflowID, run.RunID)
	}
	if err = sh.shipped.Reuse(as, user); errors.Is(err, fs.ErrNotExist) {
		err = sh.fetch(ctx, *a, sources(in), func(n int64) {
			now.Store(&spec.Fetching{Host: sh.Name, Size: int64(a.Size), Bytes: n})
		})
		if err == nil {
			err = sh.shipped.Unpack(ctx, as, int64(a.Size), user, func(n int64) {
				now.Store(&spec.Fetching{Host: sh.Name, Size: int64(a.Size), Bytes: n, Unpacking: true})
			})
		}
	}
	if err == nil || ctx.Err() != nil {
		if err != nil {
			unlock()
		}
		return unlock, err
	}
	unlock()
	if _, ok := errors.AsType[*shipped.TakenError](err); ok {
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %v", sh.Name, err), spec.ErrPlacement, nil)
	}
	sh.sweepShipped(nil) // frees space
	return nil, temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("cannot fetch the shipped directory: %v", err), spec.ErrPlacement,
		// A run with its own host cannot be placed elsewhere.
		temporal.ApplicationErrorOptions{NonRetryable: sh.Owned})
}

// tellHowFar reports a host's progress to the server until done is closed.
func tellHowFar(ctx context.Context, now *atomic.Pointer[spec.Fetching], done <-chan struct{}) {
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			activity.RecordHeartbeat(ctx, now.Load())
		case <-done:
			return
		}
	}
}

// sources returns the hosts that have the archive: the run's other hosts, and the host that stores
// the archive for all of them.
func sources(in hostapi.ReserveInput) []spec.HostService {
	if in.Spec.Ship.From == nil {
		return in.Shipped
	}
	return append([]spec.HostService{*in.Spec.Ship.From}, in.Shipped...)
}

// fetch fetches a missing archive from the first source that has it. The digest must be locked.
func (sh *shipping) fetch(ctx context.Context, a spec.Archive, sources []spec.HostService, progress func(int64)) error {
	if sh.shipped.Has(a.Digest) {
		return nil
	}
	in, err := sh.shipped.Create(a)
	if err != nil {
		return err
	}
	defer in.Close()
	var problems []string
	for _, from := range sources {
		if from.Host == sh.Name {
			continue // this host itself, which no longer has it
		}
		err := fetchFrom(ctx, from, a, in, progress)
		var of *fs.PathError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.As(err, &of):
			return err // an error of this host's disk
		}
		problems = append(problems, err.Error())
		if _, ok := errors.AsType[*shipped.DigestError](err); ok {
			if err := in.Reset(); err != nil {
				return err
			}
		}
	}
	if len(problems) == 0 {
		return errors.New("no host serves it; host workers need --listen if the Temporal server is on this machine")
	}
	return errors.New(strings.Join(problems, "; "))
}

func fetchFrom(ctx context.Context, from spec.HostService, a spec.Archive, in *shipped.Incoming, progress func(int64)) error {
	c := hostservice.NewClient(from, "")
	defer c.Close()
	if err := c.ReadArchive(ctx, a, reported{in, progress}); err != nil {
		return err
	}
	if err := in.Commit(); err != nil {
		return fmt.Errorf("host %s: %w", from.Host, err)
	}
	return nil
}

// reported is an archive being fetched that reports how many bytes have arrived.
type reported struct {
	*shipped.Incoming
	progress func(int64)
}

func (r reported) Write(b []byte) (int, error) {
	n, err := r.Incoming.Write(b)
	r.progress(r.Len())
	return n, err
}

// dirOf returns a task's working directory. A relative directory is relative to the directory that
// the run ships, if any. If the spec does not name a directory, it is the shipped directory or, if
// the run ships none, the host worker's working directory.
func (sh *shipping) dirOf(run runkey.Run, s *spec.RunSpec, t spec.Task) string {
	return dirIn(sh.shipsTo(run, s), s, t)
}

// shipsTo returns the directory that the run's archive is unpacked to, or an empty string if it
// ships none.
func (sh *shipping) shipsTo(run runkey.Run, s *spec.RunSpec) string {
	if !s.Ships() {
		return ""
	}
	return sh.shipped.Dir(sh.ownerOf(run, s))
}

// ownerOf returns the run that owns the directory a run uses. A sweep's trials share the sweep's
// directory. If a policy decides which content is executed, each trial has its own directory, since
// other trials may write to a shared directory.
func (sh *shipping) ownerOf(run runkey.Run, s *spec.RunSpec) runkey.Run {
	if of := s.Ship.Sweep; of != nil && !sh.Guard.HasPolicy() {
		run.WorkflowID, run.RunID = of.ID, of.Execution
	}
	return run
}

func dirIn(ships string, s *spec.RunSpec, t spec.Task) string {
	switch {
	case s.Ships() && !filepath.IsAbs(t.Dir):
		return filepath.Join(ships, t.Dir)
	case t.Dir != "":
		return t.Dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}

// keepStore removes shipped archives and directories that are no longer needed, until ctx is
// done.
func (r *reconciler) keepStore(ctx context.Context) {
	if err := r.shipped.Clear(); err != nil {
		r.Log.Warn("could not remove unfinished downloads", zap.Error(err))
	}
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	var asked time.Time
	for {
		var over func(shipped.Upload) bool
		if time.Since(asked) > askEvery {
			asked = time.Now()
			r.gate.forgetSignatures()
			over = func(u shipped.Upload) bool { return r.isOver(ctx, u) }
		}
		r.ships.sweepShipped(over)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (sh *shipping) sweepShipped(over func(shipped.Upload) bool) {
	if sh.Owned {
		return // the directory is removed with its run, and other runs use it
	}
	err := sh.shipped.Sweep(shipped.Needs{
		Held: func(run runkey.Run) bool {
			return slices.ContainsFunc(sh.plans.all(), func(p *plan) bool {
				return p.Run == run || p.Spec != nil && sh.ownerOf(p.Run, p.Spec) == run
			})
		},
		Used: func(digest string) bool {
			return slices.ContainsFunc(sh.plans.all(), func(p *plan) bool {
				return p.Spec != nil && p.Spec.Ship.Archive != nil && p.Spec.Ship.Archive.Digest == digest
			})
		},
		Over: over,
	})
	if err != nil {
		sh.Log.Warn("could not remove shipped directories", zap.Error(err))
	}
}

// isOver reports whether the run for which an archive is stored has ended. It returns false if the
// server cannot be reached or is not the run's server. A run unknown to its server counts as ended
// once startTakes has passed.
func (r *reconciler) isOver(ctx context.Context, u shipped.Upload) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if u.Server != "" {
		if id, err := r.Server.Identity(ctx, u.Namespace); err != nil || id != u.Server {
			return false
		}
	}
	d, err := r.Server.DescribeRun(ctx, u.WorkflowID, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return r.now().Sub(u.Time) > startTakes
	case err != nil:
		return false
	}
	info := d.GetWorkflowExecutionInfo()
	// An execution that closed before the upload is an earlier run with that ID.
	return !workflowstatus.IsOpen(info.GetStatus()) &&
		(info.GetCloseTime().AsTime().After(u.Time) || r.now().Sub(u.Time) > startTakes)
}
