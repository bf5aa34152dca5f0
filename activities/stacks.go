package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/stacks"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// stacksError is the type of capture errors.
const stacksError = "StacksNotCaptured"

const (
	// captureBound limits the captures. It is shorter than the time limit of CaptureStacks.
	captureBound = 7 * time.Second
	// supervisorBound limits the wait for the supervisor's list of processes.
	supervisorBound = 3 * time.Second
	// keepCaptures limits the age of captures in the state directory.
	keepCaptures = 7 * 24 * time.Hour
)

// CaptureStacks writes the stacks of tasks' processes to files.
func (h *Host) CaptureStacks(ctx context.Context, in spec.HostRequest[spec.StacksRequest]) (spec.RequestAnswer, error) {
	p, err := h.accept(ctx, in.Group, request{"stacks", in.Request.Tasks, policy.AskStacks})
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	return h.captures.captureStacks(ctx, p, in.Request.Tasks, in.Request.Again.Std())
}

// captureStacks captures the stacks of the given tasks' processes, or of all tasks on this host if
// none is named. The tasks that have been silent longest come first, because the time is limited
// and they may be the cause of the problem. The answer omits tasks without a living process. If the
// capture took no longer than again, captureStacks repeats it after that time.
func (c *captures) captureStacks(ctx context.Context, p *plan, tasks []string, again time.Duration) (spec.RequestAnswer, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, captureBound)
	defer cancel()
	asking, asked := context.WithTimeout(ctx, supervisorBound)
	defer asked()
	reply, err := c.Supervisor.Processes(asking, p.Run)
	if errors.Is(err, context.DeadlineExceeded) {
		err = c.notCaptured("stacks", err)
	}
	if err != nil {
		return spec.RequestAnswer{}, err
	}
	now := c.now()
	var living []quietProcess
	for _, q := range reply.Processes {
		alive := q.Exit == nil && q.PID > 0
		if alive && (len(tasks) == 0 || slices.Contains(tasks, q.Key.Task)) {
			living = append(living, quietFor(q, now))
		}
	}
	slices.SortStableFunc(living, func(a, b quietProcess) int { return a.since.Compare(b.since) })
	dropOld(c.ownCaptures(), now.Add(-keepCaptures))
	targets := list.Of(living, func(q quietProcess) stacks.Task { return c.stacksOf(p, q) })
	results, err := stacks.Capture(ctx, targets, supervisor.CookieVar)
	if err != nil {
		return spec.RequestAnswer{}, c.notCaptured("stacks", err)
	}
	out, err := c.captured(p, results)
	if err != nil || again == 0 || time.Since(began) > again || retry.Sleep(ctx, again) != nil {
		return out, err
	}
	for i := range targets {
		targets[i].Brief = true
	}
	if later, err := stacks.Capture(ctx, targets, supervisor.CookieVar); err == nil {
		out.Motion = stacktree.Compare(treeOf(p, results), treeOf(p, later), again)
	}
	return out, nil
}

// captured returns CaptureStacks' answer. It returns an error only if all captures have failed,
// because some stacks are better than none.
func (c *captures) captured(p *plan, results []stacks.Result) (spec.RequestAnswer, error) {
	out := spec.RequestAnswer{Files: map[string]string{}}
	var failed []error
	for _, r := range results {
		switch {
		case r.Err == nil:
			out.Tasks = append(out.Tasks, r.Name)
			out.Files[r.Name] = r.File
		case !errors.Is(r.Err, stacks.ErrGone):
			failed = append(failed, c.notCaptured("stacks of "+r.Name, r.Err))
			c.Log.Warn("no stacks were saved", zap.String("task", r.Name), zap.Error(r.Err))
		}
	}
	slices.Sort(out.Tasks)
	out.Stacks = treeOf(p, results).Fit(stacktree.HostBytes)
	if len(out.Files) == 0 && len(failed) > 0 {
		return spec.RequestAnswer{}, failed[0]
	}
	return out, nil
}

// treeOf returns the stacks by rank, including tasks with an unknown stack.
func treeOf(p *plan, results []stacks.Result) stacktree.Tree {
	var all []stacktree.Tree
	for _, r := range results {
		m, err := p.clusterFor(r.Name).Member(r.Name)
		if err != nil {
			continue
		}
		stack := r.Stack
		switch {
		case len(stack) > 0:
		case errors.Is(r.Err, stacks.ErrGone):
			stack = stacktree.Stack{{Kind: stacktree.Ended, Function: "exited while stacks were being saved"}}
		case r.Err != nil:
			stack = stacktree.Stack{{Kind: stacktree.Unknown, Function: "has no stack: " + bounded(r.Err.Error())}}
		}
		all = append(all, stacktree.Of(m.Rank, stack))
	}
	return stacktree.Merge(all...)
}

// notCaptured returns a non-retryable error, because a user may be waiting for the capture before
// ending the run.
func (c *captures) notCaptured(what string, err error) error {
	return temporal.NewNonRetryableApplicationError(
		bounded(fmt.Sprintf("%s on host %s: %s", what, c.Name, err)), stacksError, nil)
}

// stacksOf returns a process's capture task. The capture is written next to the process's logs, as
// the user of those logs.
func (c *captures) stacksOf(p *plan, q quietProcess) stacks.Task {
	user, err := p.userOf(q.Process)
	t := stacks.Task{
		Name: q.Key.Task, PID: q.PID, LogDir: q.LogDir, Root: q.LogDir, User: user,
		Head: []string{
			fmt.Sprintf("run %s, host %s, process %d of the task with pid %d", p.Run.WorkflowID, c.Name, p.number(q.Process), q.PID),
			q.text,
		},
	}
	if t.LogDir == "" || err != nil {
		t.LogDir, t.Prefix, t.User = "", q.Key.Task+"-", nil
		t.Root, t.Dir = c.captureDir(p, q.Process)
	}
	return t
}

// captureDir returns the directory, and the root above it, for captures of a process without a log
// directory. The directory is in the log root, because a host worker's state directory may be
// removed with the run. If there is no log root, or if the process has its own user, who may own
// directories among the logs, the directory is in the state directory.
func (c *captures) captureDir(p *plan, q supervisor.Process) (root, dir string) {
	root = c.LogRoot
	if root == "" || root == spec.NullDir || p.User != nil || q.User != "" {
		root = c.ownCaptures()
	}
	rank := 0
	if m, err := p.clusterFor(q.Key.Task).Member(q.Key.Task); err == nil {
		rank = m.Rank
	}
	return root, tasklog.ProcessDir(p.runDirBelow("."), p.number(q), rank)
}

// ownCaptures is the directory for captures in the state directory.
func (c *captures) ownCaptures() string { return filepath.Join(c.StateDir, "stacks") }

// dropOld removes a directory's files that were last written before the given time. Only their age
// shows that they are no longer needed.
func dropOld(dir string, before time.Time) {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // unreadable directories stay
		}
		if d.IsDir() {
			dirs = append(dirs, path)
		} else if info, err := d.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(path)
		}
		return nil
	})
	for _, path := range slices.Backward(dirs) {
		_ = os.Remove(path) // fails for non-empty directories, as it should
	}
}

// quietProcess is a process and the time for which it has written nothing.
type quietProcess struct {
	supervisor.Process
	since time.Time
	text  string
}

func quietFor(p supervisor.Process, now time.Time) quietProcess {
	q := quietProcess{Process: p, since: now, text: "its output does not go to a file"}
	var written time.Time
	files := 0
	for _, name := range []string{tasklog.StdoutFile, tasklog.StderrFile} {
		if p.LogDir == "" {
			break
		}
		info, err := os.Stat(filepath.Join(p.LogDir, name))
		if err != nil {
			continue
		}
		files++
		if info.Size() > 0 && info.ModTime().After(written) {
			written = info.ModTime()
		}
	}
	ago := func(t time.Time) string { return max(0, now.Sub(t)).Round(time.Second).String() }
	switch {
	case files == 0:
	case written.IsZero():
		q.since, q.text = p.Started, fmt.Sprintf("no output since its start %s ago", ago(p.Started))
	default:
		q.since, q.text = written, "no output for "+ago(written)
	}
	return q
}
