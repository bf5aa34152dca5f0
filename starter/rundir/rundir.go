package rundir

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// Record identifies a directory's run.
type Record struct {
	// Server describes how to reach the run's server. If Embedded is set, it is the user's
	// embedded server, which may have moved to another address.
	Server   connect.Options `json:"server"`
	Embedded bool            `json:"embedded,omitempty"`
	// Queue is the run's private queue. A run with the same ID on another queue is not this
	// run.
	Queue   string    `json:"queue"`
	RunID   string    `json:"run_id"`
	PID     int       `json:"pid"` // of the owner; informative only
	Started time.Time `json:"started"`
}

// Dir is a directory that we have locked.
type Dir struct {
	Path string
	lock *os.File
}

const (
	// lockName is the file with the record.
	lockName = "owner.lock"
	// A directory is created under a name that starts with a dot, and renamed once it is locked,
	// so that no other process sees it unlocked.
	unborn = ".new-"
	// unbornFor is the age at which such a directory is assumed to have been left behind by a
	// crash.
	unbornFor = time.Hour
)

// Create creates a directory for a new run in parent.
func Create(parent string) (*Dir, error) {
	// The name is short because paths of Unix sockets are limited to 108 bytes.
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	name := hex.EncodeToString(b[:])
	path := filepath.Join(parent, unborn+name)
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path}
	if err = d.tryLock(); err == nil {
		d.Path = filepath.Join(parent, name)
		err = os.Rename(path, d.Path)
	}
	if err != nil {
		d.Close()
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

// Save writes the record, once.
func (d *Dir) Save(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = d.lock.WriteAt(append(b, '\n'), 0)
	return err
}

// Load reads the record. Its RunID is empty if the owner died before it started a run.
func (d *Dir) Load() (Record, error) {
	var r Record
	b, err := os.ReadFile(filepath.Join(d.Path, lockName))
	if len(b) > 0 {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}

// Close releases the directory's lock.
func (d *Dir) Close() {
	if d.lock != nil {
		d.lock.Close()
	}
}

// Remove deletes the directory.
func (d *Dir) Remove() error {
	defer d.Close()
	return os.RemoveAll(d.Path)
}

func (d *Dir) tryLock() (err error) {
	d.lock, err = filelock.Try(filepath.Join(d.Path, lockName))
	return err
}

// Abandoned returns the directories in parent that have lost their owners. It locks them, so
// that no other process cleans them up at the same time.
func Abandoned(parent string) ([]*Dir, error) {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []*Dir
	for _, e := range entries {
		d := &Dir{Path: filepath.Join(parent, e.Name())}
		if strings.HasPrefix(e.Name(), unborn) {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > unbornFor {
				_ = os.RemoveAll(d.Path)
			}
			continue
		}
		if d.tryLock() == nil {
			dirs = append(dirs, d)
		}
	}
	return dirs, err
}
