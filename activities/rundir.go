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
	"syscall"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The modes of a run's log directory: it is for the run's user alone, or also for a group,
// which files created in it inherit.
const (
	closedDir fs.FileMode = 0o700
	groupDir  fs.FileMode = 0o750
)

// logMode returns the mode of directories of logs.
func (p *plan) logMode() fs.FileMode { return logMode(p.Spec) }

// keptIn returns the directory that the files of processes must not leave through a link. If
// the run has a user, it is the run's own directory, since other users may only pass through
// the directories above.
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

// makeRunDir creates the log directory of a run. It follows no links out of the log root, and
// refuses a directory that somebody else has created.
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

// runDir is the log directory of a run that is to be created.
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
	// A prune may remove the directory of an earlier run with that ID meanwhile.
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
	// The parent is passable: users with access to the logs of a run must be able to reach
	// them.
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
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
