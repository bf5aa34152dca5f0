package retention

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Past describes the runs in a log directory, and their other files on this host.
type Past struct {
	*Logs
	// Home is the directory with the state directories of the host workers that the removable runs
	// belong to.
	Home string
	// Holds reports whether a state directory contains a run's plan, or an unreleased journal of
	// it.
	Holds func(state string, run runkey.Run) bool
}

// Facts returns what this host knows about an execution with a note, except for the server's
// answer. The size is 0 unless measure is set.
func (p Past) Facts(e Entry, measure bool) Facts {
	var f Facts
	n := e.Note
	_, err := os.Stat(n.State)
	gone := errors.Is(err, fs.ErrNotExist)
	f.Gone = gone && n.IsOfThisHost() // it may still exist on another host
	if f.Held = !gone && p.Holds(n.State, n.Run); f.Held {
		f.Idle = supervisor.LockFree(n.State)
	}
	f.Noted, f.Ended = !n.Ended.IsZero(), n.Ended
	if measure || !f.Noted {
		var newest time.Time
		if f.Bytes, newest = p.size(e); !f.Noted {
			f.Ended = n.Began // or later
			if newest.After(f.Ended) {
				f.Ended = newest
			}
		}
		f.Bytes += p.rest(e)
	}
	return f
}

// rest returns the size of an execution's files other than its logs.
func (p Past) rest(e Entry) int64 {
	open, released := supervisor.Journals(e.Note.State, e.Note.Run)
	return treeSize(open) + treeSize(released) + treeSize(shipped.Open(e.Note.State).DirOf(e.Note.Run, p.Path(e)))
}

// Mine reports whether an execution's host worker is on this host, with its state directory in
// Home. It is false for an execution without a note.
func (p Past) Mine(e Entry) bool {
	return e.Note != nil && e.Note.IsOfThisHost() && e.Note.IsBelow(p.Home)
}

// Remove removes all files of an execution for which [Past.Mine] is true, unless the execution has
// become active since it was listed. The logs must be locked.
func (p Past) Remove(e Entry, server Answer) error {
	entries, err := p.entriesOf(e.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if i := slices.IndexFunc(entries, func(is Entry) bool { return is.Execution == e.Execution }); i >= 0 {
		if !p.Mine(entries[i]) {
			return &AliveError{e.RunID, Unsettled} // another run has been started there
		}
		e = entries[i]
	}
	now := p.Facts(e, false)
	if now.Server = server; now.Alive() != "" {
		return &AliveError{e.RunID, now.Alive()}
	}
	_, released := supervisor.Journals(e.Note.State, e.Note.Run)
	if err := os.Remove(released); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := shipped.Open(e.Note.State).Drop(e.Note.Run); err != nil {
		return err
	}
	return p.remove(e)
}

// AliveError reports that a run is not over.
type AliveError struct {
	RunID string
	Why   Reason
}

func (e *AliveError) Error() string { return "run " + e.RunID + " " + string(e.Why) }

// Policy limits what a host worker keeps. The host worker automatically removes the rest.
type Policy struct {
	// Home is the same as in [Past].
	Home string `json:"home"`
	// For limits how long logs are kept after their run has finished; 0 means no limit.
	For time.Duration `json:"for,omitempty"`
	// MaxBytes is the same as in [Rule].
	MaxBytes int64 `json:"most_bytes,omitempty"`
}

// DefaultFor is the default of For. The embedded server keeps runs' histories for the same time.
const DefaultFor = 90 * 24 * time.Hour

// Apply removes what a policy does not keep, and returns the IDs of the removed runs. It does not
// ask the server. A run is kept if its note does not record its end, or if the note's times are
// implausible.
func (p Policy) Apply(dir string, now time.Time, holds func(string, runkey.Run) bool) (removed []string, err error) {
	if p.For <= 0 && p.MaxBytes <= 0 {
		return nil, nil
	}
	l, err := OpenLogs(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if err := l.Lock(); err != nil {
		if errors.Is(err, ErrBusy) {
			err = nil // another process or the next call will remove them
		}
		return nil, err
	}
	past := Past{Logs: l, Home: filepath.Clean(p.Home), Holds: holds}
	all, err := l.Entries()
	var entries []Entry
	var facts []Facts
	for _, e := range all {
		if past.Mine(e) {
			entries = append(entries, e)
			f := past.Facts(e, p.MaxBytes > 0)
			if e.Note.isMistimed(now) {
				f.Noted, f.Gone = false, false
			}
			facts = append(facts, f)
		}
	}
	rule := Rule{MaxBytes: p.MaxBytes}
	if p.For > 0 {
		rule.Before = now.Add(-p.For)
	}
	for i, reason := range rule.Choose(facts) {
		if reason != "" {
			continue
		}
		if removeErr := past.Remove(entries[i], Silent); removeErr != nil {
			err = errors.Join(err, removeErr)
			continue
		}
		removed = append(removed, entries[i].RunID)
	}
	return removed, err
}
