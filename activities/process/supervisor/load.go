package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// loadRuns reads every journal that was not archived.
//
// A supervisor that died while writing leaves a torn last line. No answer was based on that line,
// so it is cut off. Anything else that is unreadable is damage. In that case, the file is moved
// aside and its readable part is kept, with a mark that makes every unknown process of the run
// count as lost, because a damaged journal must never be mistaken for a run that has not started.
func loadRuns(dir string) (map[string]*run, error) {
	runs := make(map[string]*run)
	err := eachJournal(dir, openJournal, func(path, hash string) error {
		r, c, err := loadJournal(path, hash)
		if err != nil {
			return err
		}
		if c.damaged {
			if err := setAside(r, path, c.good); err != nil {
				return fmt.Errorf("setting a damaged journal aside: %w", err)
			}
		}
		runs[hash] = r
		return nil
	})
	return runs, err
}

// eachJournal calls do with the path and run hash of each journal with the suffix end in a state
// directory, until do returns an error.
func eachJournal(dir, end string, do func(path, hash string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the journals: %w", err)
	}
	for _, e := range entries {
		if hash, ok := strings.CutSuffix(e.Name(), end); ok && isRunHash(hash) {
			if err := do(journalIn(dir, e.Name()), hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// Journalled reads the processes from the journals of a supervisor that has exited, by task and
// number. It does not change anything. Unlike [OpenState] it does not mark processes without an
// exit as lost.
func Journalled(dir string) (all []Process, err error) {
	for _, end := range []string{openJournal, releasedJournal} {
		err := eachJournal(dir, end, func(path, hash string) error {
			r, _, err := loadJournal(path, hash)
			if err == nil {
				all = append(all, r.views()...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// contents describes what a journal contains, except for its run.
type contents struct {
	good    []byte // whole, readable lines
	damaged bool
}

// loadJournal reads a journal without changing the disk. The returned run's journal continues after
// the readable part.
func loadJournal(path, hash string) (*run, contents, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, contents{}, fmt.Errorf("reading a journal: %w", err)
	}
	r := newRun(hash, runkey.Run{})
	if info, err := os.Stat(path); err == nil {
		r.touched = info.ModTime()
	}
	var c contents
	for len(raw) > 0 {
		line, rest, whole := bytes.Cut(raw, []byte{'\n'})
		raw = rest
		var rec record
		if err := json.Unmarshal(line, &rec); err != nil || !whole {
			// A line without a newline was never finished even if it parses.
			if whole {
				c.damaged = true
			}
			continue
		}
		if !r.replay(rec) {
			c.damaged = true
			continue
		}
		c.good = append(append(c.good, line...), '\n')
	}
	if len(c.good) > 0 && r.key == (runkey.Run{}) {
		c.damaged = true // the line that names the run is gone
	}
	r.journal = newJournal(path, r.key)
	r.journal.size = int64(len(c.good))
	r.journal.torn = true // the rest of the file is not valid
	return r, c, nil
}

// replay applies one record. It reports whether the record is valid in this state.
func (r *run) replay(rec record) bool {
	id := taskID{rec.Generation, rec.Task}
	known := func() *process {
		t := r.tasks[id]
		if t == nil {
			return nil
		}
		return t.process(rec.Number)
	}
	switch rec.Type {
	case recRun:
		if rec.Run == nil || runHash(*rec.Run) != r.hash {
			return false
		}
		r.key = *rec.Run
	case recStarting:
		t := r.task(id)
		if rec.Number != t.next {
			return false
		}
		if rec.Fence == nil {
			return false
		}
		p := newProcess(t, rec.Number, rec.Fence.Launch)
		p.LogDir, p.User, p.boot, p.Started = rec.LogDir, rec.User, rec.Boot, rec.At
		close(p.settled)
		t.enter(p)
		if t.fence.Less(*rec.Fence) {
			t.fence = *rec.Fence
		}
		r.begin(rec.Generation)
	case recStarted:
		p := known()
		if p == nil {
			return false
		}
		p.PID, p.ticks, p.Started = rec.PID, rec.Ticks, rec.At
	case recAborted:
		p := known()
		if p == nil || rec.Number != p.task.next-1 {
			return false
		}
		p.task.takeBack(p)
	case recExited:
		p := known()
		if p == nil || rec.Exit == nil {
			return false
		}
		if p.Exit == nil {
			close(p.done)
		}
		p.Exit, p.phase = rec.Exit, ended
	case recGranted:
		p := known()
		if p == nil {
			return false
		}
		p.Granted, p.Failures, p.Note = true, rec.Failures, rec.Note
	case recLeased:
		r.ports.Remember(rec.Generation, rec.Group, ports.Lease{Any: rec.Ports, Fixed: rec.Fixed})
	case recDamaged:
		r.damaged = rec.Moved
	case recReleased:
		r.releasing = true
		r.released = closedChan
	default:
		// A later version wrote the line. Keep the line for that version.
		return rec.Type != ""
	}
	return true
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// setAside keeps a damaged journal for inspection, and writes its readable part to a new file.
func setAside(r *run, path string, good []byte) error {
	aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000")
	mark, err := encode(record{Type: recDamaged, Moved: aside})
	if err != nil {
		return err
	}
	// Copy the file before replacing it, so that the damage remains detectable if a crash comes
	// between.
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteSynced(aside, raw, 0o600); err != nil {
		return err
	}
	text := slices.Concat(good, mark)
	if err := atomicfile.WriteSynced(path, text, 0o600); err != nil {
		return err
	}
	r.damaged = aside
	r.journal.size = int64(len(text))
	return nil
}

// archived reads a released run, or returns nil.
func (s *State) archived(hash string) *run {
	r, _, err := loadJournal(s.releasedPath(hash), hash)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		// The journal exists but cannot be read, so the run has started.
		r = newRun(hash, runkey.Run{})
		r.damaged = s.releasedPath(hash)
	}
	r.releasing = true
	r.released = closedChan
	return r
}
