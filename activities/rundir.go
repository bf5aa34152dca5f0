package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.temporal.io/sdk/temporal"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Modes of a run's log directory. Only the run's user can access it, or also a group, which files
// created in the directory inherit.
const (
	closedDir fs.FileMode = 0o700
	groupDir  fs.FileMode = 0o750
)

// logMode returns the mode of log directories.
func (p *plan) logMode() fs.FileMode { return logMode(p.Spec) }

// keptIn returns the directory that process files must not leave through a link. If the run has a
// user, this is the run's own directory, since the user may only pass through the directories above
// it.
func (p *plan) keptIn() string {
	if p.User != nil {
		return p.runDir()
	}
	return p.LogRoot
}

func logMode(s *spec.RunSpec) fs.FileMode {
	if s != nil && s.Logs.Group != "" {
		return groupDir
	}
	return closedDir
}

// makeRunDir creates a run's log directory. It does not follow links out of the log root, and
// refuses a directory that another user has created.
func (c *checks) makeRunDir(run runkey.Run, s *spec.RunSpec, user *hostuser.User) error {
	root := c.ships.logRoot(s)
	if root == spec.NullDir || root == "" {
		return nil
	}
	d := runDir{run: run, state: c.StateDir, root: root, path: strings.TrimPrefix(tasklog.RunDir(root, run.WorkflowID, run.RunID), root+"/"), mode: logMode(s), gid: -1}
	if s.Logs.Group != "" {
		gid, err := hostuser.Group(context.Background(), s.Logs.Group)
		if err != nil {
			return err
		}
		if user != nil && gid != user.GID && !slices.Contains(user.Groups, gid) {
			return fmt.Errorf("the user %s is not in the group %s", user.Name, s.Logs.Group)
		}
		d.mode |= fs.ModeSetgid
		d.gid = int(gid)
	}
	if user != nil && root == c.LogRoot {
		d.user = user // the user cannot create it there
		return d.make()
	}
	return user.Do(d.make)
}

// runDir describes a run's log directory, to create it.
type runDir struct {
	run        runkey.Run
	state      string // the host worker's state directory
	root, path string
	mode       fs.FileMode
	gid        int            // -1 keeps the default group
	user       *hostuser.User // the owner to set, if we are root
}

func (d runDir) make() error {
	if err := tasklog.MakeDir(d.root); err != nil {
		return err
	}
	var err error
	// The directory of an earlier run with the same ID may be removed concurrently, together with
	// its logs.
	for range 3 {
		if err = d.makeBelow(); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

func (d runDir) makeBelow() error {
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return err
	}
	defer root.Close()
	// The parent is passable, because users with access to a run's logs must be able to reach them.
	if err := root.MkdirAll(filepath.Dir(d.path), tasklog.Passable); err != nil {
		return d.wrong(err)
	}
	if err := retention.Begin(d.root, d.run, d.state); err != nil {
		return d.wrong(err)
	}
	if err := root.Mkdir(d.path, closedDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return d.wrong(err)
	}
	info, err := root.Lstat(d.path)
	if err != nil {
		return d.wrong(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	theirs := d.user != nil && ok && stat.Uid == d.user.UID
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s/%s is not a directory", d.root, d.path)
	case d.user != nil && ok && stat.Uid != 0 && !theirs:
		return fmt.Errorf("%s/%s belongs to another user", d.root, d.path)
	case d.user != nil && !theirs:
		gid := int(d.user.GID)
		if d.gid >= 0 {
			gid = d.gid
		}
		if err := root.Chmod(d.path, d.mode); err != nil {
			return d.wrong(err)
		}
		return d.wrong(root.Lchown(d.path, int(d.user.UID), gid))
	case d.gid >= 0 && ok && int(stat.Gid) != d.gid:
		if err := root.Lchown(d.path, -1, d.gid); err != nil {
			return d.wrong(err)
		}
	}
	if info.Mode().Perm() == d.mode.Perm() && info.Mode()&fs.ModeSetgid == d.mode&fs.ModeSetgid {
		return nil
	}
	return d.wrong(root.Chmod(d.path, d.mode))
}

func (d runDir) wrong(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("log directory %s/%s: %w", d.root, d.path, reasonIn(err))
}

// reasonIn returns an error without its path.
func reasonIn(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// logRoot returns the directory for the logs of runs with the given spec on this host.
func (sh *shipping) logRoot(s *spec.RunSpec) string {
	if sh.LogsCopiedTo != "" {
		return sh.LogRoot // the spec's directory is on the owner's machine
	}
	return cmp.Or(s.Logs.Dir, sh.LogRoot)
}

// told converts a path in the logs to the path sent to the run. If logs are copied, it returns the
// copy's path.
func (h *Host) told(p *plan, path string) string {
	if h.LogsCopiedTo == "" || p == nil {
		return path
	}
	root := cmp.Or(p.Spec.Logs.Dir, h.LogsCopiedTo)
	if root == spec.NullDir {
		return ""
	}
	rest, below := strings.CutPrefix(path, p.LogRoot)
	if !below {
		return path
	}
	return root + rest
}

// describe returns the exit in the form that is sent to the run, and the task's value.
func (h *Host) describe(p *plan, q supervisor.Process) (spec.Exit, json.RawMessage) {
	e, value := h.describeExit(p, q)
	e.LogDir, e.ErrorFile = h.told(p, e.LogDir), h.told(p, e.ErrorFile)
	return e, value
}

// userFor returns the user that the policy names, or nil for the host worker's own user.
func (r *reservations) userFor(ctx context.Context, name string) (*hostuser.User, error) {
	if name == "" {
		return nil, nil
	}
	user, err := hostuser.Lookup(ctx, name)
	if err == nil {
		err = r.letThrough(user)
	}
	if err != nil {
		// A retry would also fail, because the host's configuration is wrong.
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %v", r.Name, err), spec.ErrPlacement, nil)
	}
	return user, nil
}

// letThrough lets a user reach that user's files in the state directory: sockets, and directories
// that the user's runs ship. All other files in the state directory are protected by their own
// modes.
func (r *reservations) letThrough(user *hostuser.User) error {
	if user == nil {
		return nil
	}
	const passable = 0o711
	if err := os.Chmod(r.StateDir, passable); err != nil {
		return err
	}
	return user.Do(func() error {
		for _, dir := range []string{r.StateDir, r.LogRoot} {
			if at := closedAbove(dir); at != "" {
				return fmt.Errorf("the user %s cannot pass through %s to the tasks' files: start the host worker with another --state-dir, such as /var/lib/clusterrun, or run chmod o+x %s", user.Name, at, at)
			}
		}
		return nil
	})
}

// closedAbove returns the first directory on the path that the current user cannot enter, or an
// empty string.
func closedAbove(dir string) string {
	if parent := filepath.Dir(dir); parent != dir {
		if at := closedAbove(parent); at != "" {
			return at
		}
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() && hostuser.Access(dir, unix.X_OK) != nil {
		return dir
	}
	return ""
}

// userOf returns the recorded user as whom to read and write a process's files. It does not use the
// directory's owner, who may have changed. p may be nil.
func (p *plan) userOf(q supervisor.Process) (*hostuser.User, error) {
	if p != nil && p.User != nil {
		return p.User, nil
	}
	if q.User != "" {
		return nil, fmt.Errorf("the process ran as the user %s, but the record needed to read its files has been deleted", q.User)
	}
	return nil, nil
}
