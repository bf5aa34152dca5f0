package retention

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
)

// Logs is a log directory that is held open.
type Logs struct {
	Dir  string
	root *os.Root
	lock *os.File
}

// OpenLogs opens a log directory.
func OpenLogs(dir string) (*Logs, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Logs{Dir: dir, root: root}, nil
}

// Close closes and unlocks the directory.
func (l *Logs) Close() {
	if l.lock != nil {
		_ = l.lock.Close()
	}
	_ = l.root.Close()
}

// ErrBusy means that another process is removing logs from the same directory.
var ErrBusy = errors.New("another process is removing logs; try again when it has finished")

// Lock prevents other processes from removing anything until Close is called.
func (l *Logs) Lock() error {
	f, err := l.root.Open(".")
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return fmt.Errorf("%s: %w", l.Dir, err)
	}
	l.lock = f
	return nil
}

// Entry is an execution of a run that has logs or a note in a log directory.
type Entry struct {
	// RunID is the run's ID, and Execution the short ID of its first execution.
	RunID, Execution string
	// Note is nil if the execution lacks one.
	Note *Note
	dir  string // of the run, in the log directory
}

// Path returns the execution's log directory.
func (l *Logs) Path(e Entry) string { return filepath.Join(l.Dir, e.dir, e.Execution) }

// Entries lists all executions, by name. It ignores symbolic links.
func (l *Logs) Entries() ([]Entry, error) {
	runs, err := fs.ReadDir(l.root.FS(), ".")
	var entries []Entry
	for _, run := range runs {
		if !run.IsDir() {
			continue
		}
		own, runErr := l.entriesOf(run.Name())
		err = errors.Join(err, runErr)
		entries = append(entries, own...)
	}
	return entries, err
}

// EntriesOf lists one run's executions.
func (l *Logs) EntriesOf(runID string) ([]Entry, error) {
	run, _ := namesOf(runID, "")
	entries, err := l.entriesOf(filepath.Clean(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

func (l *Logs) entriesOf(run string) (entries []Entry, err error) {
	dir, err := l.openRun(run)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	files, err := fs.ReadDir(dir.FS(), ".")
	at := func(execution string) *Entry {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Execution == execution })
		if i < 0 {
			i = len(entries)
			entries = append(entries, Entry{RunID: readable(run), Execution: execution, dir: run})
		}
		return &entries[i]
	}
	for _, f := range files {
		name := f.Name()
		execution, isNote := strings.CutSuffix(name, noteEnding)
		switch {
		case strings.HasPrefix(name, "."):
		case f.IsDir() && looksOurs(dir, name):
			at(name)
		case isNote && f.Type().IsRegular():
			n, noteErr := readNote(dir, execution)
			if noteErr == nil {
				if its, _ := namesOf(n.Run.WorkflowID, n.Run.RunID); filepath.Clean(its) == run {
					e := at(execution)
					e.Note, e.RunID = &n, n.Run.WorkflowID
				}
			}
		}
	}
	return entries, err
}

// readable returns the run ID after which a directory is named or, if the ID was too long for a
// name, the name itself.
func readable(name string) string {
	if id, err := url.PathUnescape(name); err == nil {
		return id
	}
	return name
}

// looksOurs reports whether a directory contains attempts, and thus probably belongs to clusterrun.
func looksOurs(dir *os.Root, name string) bool {
	files, _ := fs.ReadDir(dir.FS(), name)
	return slices.ContainsFunc(files, isAttempt)
}

func isAttempt(f fs.DirEntry) bool {
	_, _, _, ok := tasklog.SplitProcessDir("/" + f.Name() + "/0")
	return ok && f.IsDir()
}

// openRun opens a run's directory, but not a symbolic link.
func (l *Logs) openRun(name string) (*os.Root, error) { return openDir(l.root, name) }

// openDir opens a directory, but not a symbolic link.
func openDir(parent *os.Root, name string) (*os.Root, error) {
	there, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(there, opened) {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// size returns the disk usage of an execution's logs, and when the last of them was written.
func (l *Logs) size(e Entry) (bytes int64, newest time.Time) {
	run, err := l.openRun(e.dir)
	if err != nil {
		return 0, newest
	}
	defer run.Close()
	dir, err := openDir(run, e.Execution)
	if err != nil {
		return 0, newest
	}
	defer dir.Close()
	_ = fs.WalkDir(dir.FS(), ".", count(&bytes, &newest))
	return bytes, newest
}

// count returns a function that adds up the disk usage of files, and finds the time of the last
// write.
func count(bytes *int64, newest *time.Time) fs.WalkDirFunc {
	return func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := d.Info(); err == nil {
			*bytes += onDisk(info)
			if !d.IsDir() && info.ModTime().After(*newest) {
				*newest = info.ModTime()
			}
		}
		return nil
	}
}

// treeSize returns the disk usage of a directory tree.
func treeSize(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, count(&bytes, new(time.Time)))
	return bytes
}

// onDisk returns the disk usage of a file.
func onDisk(info fs.FileInfo) int64 {
	const block = 512 // the unit of stat(2) on all disks
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * block
	}
	return info.Size()
}

// remove removes an execution's attempts and its note. Other files in the directory remain.
func (l *Logs) remove(e Entry) error {
	run, err := l.openRun(e.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer run.Close()
	if err := removeAttempts(run, e.Execution); err != nil {
		return err
	}
	if err := run.Remove(e.Execution + noteEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = l.root.Remove(e.dir) // fails while other executions exist
	return nil
}

func removeAttempts(run *os.Root, execution string) error {
	dir, err := openDir(run, execution)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	files, err := fs.ReadDir(dir.FS(), ".")
	for _, f := range files {
		if isAttempt(f) {
			err = errors.Join(err, dir.RemoveAll(f.Name()))
		}
	}
	if err == nil {
		_ = run.Remove(execution) // fails if it is not empty
	}
	return err
}
