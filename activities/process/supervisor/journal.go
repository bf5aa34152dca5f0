package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// The types of [record].
const (
	recRun      = "run"      // first line: identifies the run
	recStarting = "starting" // synced before the fork
	recStarted  = "started"
	recAborted  = "aborted" // the preceding start was not carried out
	recExited   = "exited"
	recGranted  = "granted"
	recLeased   = "leased"
	recDamaged  = "damaged" // an earlier version of this file was partly unreadable
	recReleased = "released"
)

// record is one line of a journal. It never contains a process's environment, which may hold
// secrets.
type record struct {
	Type       string      `json:"type"`
	At         time.Time   `json:"at"`
	Run        *runkey.Run `json:"run,omitempty"`
	Generation int         `json:"generation,omitempty"`
	Group      int         `json:"group,omitempty"`
	Task       string      `json:"task,omitempty"`
	Number     int         `json:"number,omitempty"`
	Fence      *Fence      `json:"fence,omitempty"`
	LogDir     string      `json:"log_dir,omitempty"`
	User       string      `json:"user,omitempty"`
	PID        int         `json:"pid,omitempty"`
	Ticks      uint64      `json:"ticks,omitempty"`
	Boot       string      `json:"boot,omitempty"`
	Exit       *Exit       `json:"exit,omitempty"`
	Ports      []int       `json:"ports,omitempty"`
	Fixed      []int       `json:"fixed,omitempty"`
	Moved      string      `json:"moved,omitempty"`
	Failures   int         `json:"failures,omitempty"`
	Note       string      `json:"note,omitempty"`
}

// lazySync is how long a record may stay unsynced if no caller waits for it. The record can be lost
// only in a crash of the machine, which also kills the process.
const lazySync = time.Second

// journal is the append-only file of one run.
//
// Each line is written with one write, and is truncated if that fails midway. So only the last line
// can be torn, if the supervisor dies while writing it. A caller that needs its record on disk
// calls commit; concurrent callers share one fdatasync.
type journal struct {
	path     string
	volatile bool   // writes are not synced; see [StateOptions]
	head     record // first line of a new file

	mu   sync.Mutex
	f    *os.File // nil until the first append
	size int64    // of all complete lines
	torn bool     // followed by a partial line that could not be removed
	// backlog holds records that could not be written and must not be lost. They are written before
	// the next record.
	backlog [][]byte
	lazy    *time.Timer
	waiters []chan error
	syncing bool
	closed  bool
}

func newJournal(path string, key runkey.Run) *journal {
	return &journal{path: path, head: record{Type: recRun, At: time.Now().UTC(), Run: &key}}
}

func encode(r record) ([]byte, error) {
	if r.At.IsZero() {
		r.At = time.Now().UTC()
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a journal record: %w", err)
	}
	return append(line, '\n'), nil
}

// append writes a record completely or not at all.
func (j *journal) append(r record) error {
	line, err := encode(r)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.flushLocked(); err != nil {
		return j.failed(err)
	}
	if err := j.writeLocked(line); err != nil {
		return j.failed(err)
	}
	j.syncSoonLocked()
	return nil
}

// keep writes a record immediately or, if that fails, before the next record.
func (j *journal) keep(r record) error {
	line, err := encode(r)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.backlog = append(j.backlog, line)
	if err := j.flushLocked(); err != nil {
		return j.failed(err)
	}
	j.syncSoonLocked()
	return nil
}

func (j *journal) failed(err error) error {
	return fault.Refuse(ErrJournal, fmt.Sprintf("cannot write the journal %s: %v%s", j.path, err, fault.LimitOf(err)))
}

func (j *journal) flushLocked() error {
	for len(j.backlog) > 0 {
		if err := j.writeLocked(j.backlog[0]); err != nil {
			return err
		}
		j.backlog = j.backlog[1:]
	}
	j.backlog = nil
	return nil
}

func (j *journal) writeLocked(line []byte) error {
	if j.closed {
		return os.ErrClosed
	}
	if j.f == nil {
		if err := j.openLocked(); err != nil {
			return err
		}
	}
	return j.putLocked(line)
}

func (j *journal) putLocked(line []byte) error {
	if _, err := j.f.Write(line); err != nil {
		// Truncate a partial line. If even that fails, nothing more may be written, since the
		// partial line would be read as damage.
		if terr := j.f.Truncate(j.size); terr != nil {
			_ = j.f.Close()
			j.f, j.torn = nil, true
			return errors.Join(err, terr)
		}
		return err
	}
	j.size += int64(len(line))
	return nil
}

func (j *journal) openLocked() error {
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	switch {
	case info.Size() == j.size:
	case info.Size() > j.size && j.torn:
		err = f.Truncate(j.size)
	default:
		// This is not the file that was read; do not write to it.
		err = fmt.Errorf("it has %d bytes instead of %d", info.Size(), j.size)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	j.f, j.torn = f, false
	if j.size > 0 {
		return nil
	}
	line, err := encode(j.head)
	if err == nil {
		err = j.putLocked(line)
	}
	if err == nil && !j.volatile {
		err = atomicfile.SyncDir(filepath.Dir(j.path))
	}
	if err != nil && j.f != nil {
		j.torn = j.f.Truncate(0) != nil
		j.size = 0
		_ = j.f.Close()
		j.f = nil
	}
	return err
}

// commit returns once all earlier records are on disk, or immediately if the journal is volatile.
func (j *journal) commit() error {
	done := make(chan error, 1)
	j.mu.Lock()
	if j.f == nil {
		j.mu.Unlock()
		return j.failed(os.ErrClosed)
	}
	if j.volatile {
		j.mu.Unlock()
		return nil
	}
	j.waiters = append(j.waiters, done)
	if !j.syncing {
		j.syncing = true
		go j.syncAll()
	}
	j.mu.Unlock()
	if err := <-done; err != nil {
		return j.failed(err)
	}
	return nil
}

// syncAll syncs for all waiting callers together, until no caller is waiting.
func (j *journal) syncAll() {
	for {
		j.mu.Lock()
		crowd := j.waiters
		j.waiters = nil
		f := j.f
		if len(crowd) == 0 {
			j.syncing = false
			j.mu.Unlock()
			return
		}
		if j.lazy != nil {
			j.lazy.Stop()
		}
		j.mu.Unlock()

		err := os.ErrClosed
		if f != nil {
			err = fdatasync(f)
		}
		for _, w := range crowd {
			w <- err
		}
	}
}

func (j *journal) syncSoonLocked() {
	if j.volatile {
		return
	}
	if j.lazy == nil {
		j.lazy = time.AfterFunc(lazySync, func() { _ = j.commit() })
		return
	}
	j.lazy.Reset(lazySync)
}

// close writes the backlog, syncs and closes the file. It returns an error if it could not save
// everything.
func (j *journal) close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	if j.lazy != nil {
		j.lazy.Stop()
	}
	err := j.flushLocked()
	open := j.f != nil
	j.mu.Unlock()
	if open {
		err = errors.Join(err, j.commit())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if j.lazy != nil {
		j.lazy.Stop()
	}
	if j.f != nil {
		err = errors.Join(err, j.f.Close())
		j.f = nil
	}
	return err
}

func fdatasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
