package retention

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Note identifies the run and the host worker that the logs beside it belong to.
type Note struct {
	Run runkey.Run `json:"run"`
	// Host is the host worker's machine, as named by [Host].
	Host string `json:"host"`
	// State is the host worker's state directory.
	State string    `json:"state"`
	Began time.Time `json:"began"`
	// Ended is zero until the run has ended.
	Ended time.Time `json:"ended,omitzero"`
}

const (
	noteEnding = ".json"
	// maxNote is more than any note's size.
	maxNote = 64 << 10
)

// namesOf returns the names of an execution's directories.
func namesOf(workflowID, runID string) (run, execution string) {
	return filepath.Split(tasklog.RunDir("", workflowID, runID))
}

// Begin records that a run's logs are in a log directory even if the existing note reports that the
// run has finished. The caller must be able to write to the directory.
func Begin(logDir string, run runkey.Run, state string) error {
	return change(logDir, run.WorkflowID, run.RunID, func(n *Note) bool {
		if n.Run == run && n.Host == Host() && n.State == state && n.Ended.IsZero() {
			return false
		}
		*n = Note{Run: run, Host: Host(), State: state, Began: time.Now().UTC()}
		return true
	})
}

// End records that a run has ended, if its start was recorded.
func End(logDir, workflowID, runID string, at time.Time) error {
	return change(logDir, workflowID, runID, func(n *Note) bool {
		if n.Run == (runkey.Run{}) || !n.Ended.IsZero() {
			return false
		}
		n.Ended = at.UTC()
		return true
	})
}

// change calls do to change a note, which is zero if it does not exist. do reports whether it has
// changed the note.
func change(logDir, workflowID, runID string, do func(*Note) bool) error {
	l, err := OpenLogs(logDir)
	if err != nil {
		return err
	}
	defer l.Close()
	run, execution := namesOf(workflowID, runID)
	dir, err := l.openRun(filepath.Clean(run))
	if err != nil {
		return err
	}
	defer dir.Close()
	n, _ := readNote(dir, execution)
	if !do(&n) {
		return nil
	}
	return writeNote(dir, execution, n)
}

// readNote reads an execution's note. The error is fs.ErrNotExist if there is no valid note.
func readNote(dir *os.Root, execution string) (n Note, err error) {
	// O_NONBLOCK, because opening a pipe would block.
	f, err := dir.OpenFile(execution+noteEnding, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return n, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return n, err
	}
	uid, _ := unix.SetfsuidRetUid(-1) // only reads the ID, because the thread may act as another user
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || stat.Uid != uint32(uid) {
		return n, fmt.Errorf("%s.json is not owned by this user: %w", execution, fs.ErrNotExist)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return Note{}, err
	}
	if _, its := namesOf(n.Run.WorkflowID, n.Run.RunID); its != execution {
		return Note{}, fmt.Errorf("%s.json belongs to another run: %w", execution, fs.ErrNotExist)
	}
	return n, nil
}

// writeNote replaces a note in one step.
func writeNote(dir *os.Root, execution string, n Note) (err error) {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	// A process ID would not be unique, because other hosts may share the directory.
	name := "." + execution + noteEnding + "-" + rand.Text()
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(name, execution+noteEnding)
	}
	if err != nil {
		_ = dir.Remove(name)
	}
	return err
}

// isMistimed reports whether a clock was wrong when the note was written, or is wrong now.
func (n Note) isMistimed(now time.Time) bool {
	const skew = time.Hour // the maximum difference between the server's clock and ours
	return n.Began.After(now) || !n.Ended.IsZero() && n.Began.Sub(n.Ended) > skew
}

// IsBelow reports whether the state directory of the run's host worker is in home.
func (n Note) IsBelow(home string) bool {
	return strings.HasPrefix(n.State, filepath.Clean(home)+"/")
}
