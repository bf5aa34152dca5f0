package shipped

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Needs reports what a sweep must keep.
type Needs struct {
	// Held reports whether the host still needs a run's files.
	Held func(runkey.Run) bool
	// Used reports whether a run that the host is not done with ships an archive.
	Used func(digest string) bool
	// Over reports whether a run that fetches its archive from this host has ended, if known. It is
	// called only when the answer matters. If Over is nil, it is never known.
	Over func(Upload) bool
}

// Clear removes an earlier host worker's unfinished files. No other call may be writing at the
// time.
func (s *Store) Clear() error { return removeAll(s.unfinished()) }

// Sweep removes what is no longer needed. Locked archives are left for the next sweep.
func (s *Store) Sweep(n Needs) error {
	return errors.Join(s.sweepRuns(n), s.sweepUploads(n), s.sweepArchives(n))
}

// whileUnlocked calls do while holding a digest's lock; it does nothing if the digest is locked.
func (s *Store) whileUnlocked(digest string, do func() error) error {
	l := s.lockOf(digest)
	select {
	case l <- struct{}{}:
		defer func() { <-l }()
		return do()
	default:
		return nil
	}
}

func (s *Store) sweepRuns(n Needs) error {
	notes, err := filepath.Glob(filepath.Join(s.runs(), "*", "*.json"))
	for _, path := range notes {
		var u Unpacked
		if readJSON(path, &u) != nil {
			continue
		}
		err = errors.Join(err, s.whileUnlocked(u.Digest, func() error {
			if n.Held(u.Run) || u.Logs != "" && exists(u.Logs) {
				return nil
			}
			return s.Drop(u.Run)
		}))
	}
	return err
}

// Drop removes the directory of a run that has ended and that the host no longer needs.
func (s *Store) Drop(run runkey.Run) error {
	dir := s.Dir(run)
	if err := removeAll(dir); err != nil {
		return err
	}
	if err := os.Remove(dir + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(dir)) // fails while other executions exist
	return nil
}

func (s *Store) sweepUploads(n Needs) error {
	notes, err := filepath.Glob(filepath.Join(s.uploads(), "*.json"))
	for _, path := range notes {
		var u Upload
		if readJSON(path, &u) == nil && n.Over != nil && n.Over(u) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

func (s *Store) sweepArchives(n Needs) error {
	archives, err := os.ReadDir(s.archives())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range archives {
		digest := e.Name()
		err = errors.Join(err, s.whileUnlocked(digest, func() error {
			kept, err := filepath.Glob(filepath.Join(s.uploads(), digest+"-*.json"))
			if err != nil || len(kept) > 0 || n.Used(digest) {
				return err
			}
			return os.Remove(s.archive(digest))
		}))
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
