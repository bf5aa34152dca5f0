package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

const (
	instanceFile = "instance"
	cgroupFile   = "cgroup"
	// Suffixes of journal names.
	openJournal     = ".jsonl"
	releasedJournal = ".released"
	// keepReleased is how long a run can be read after its release.
	keepReleased = 7 * 24 * time.Hour
)

// State is a supervisor's locked state directory.
type State struct {
	dir      string
	instance string
	boot     string
	lock     *os.File
	volatile bool // see StateOptions
	fresh    bool // new: only this supervisor has written to it
	runs     map[string]*run
	pruned   time.Time // last prune; guarded by supervisor.mu while a supervisor runs
}

// Dir returns the absolute path of the directory.
func (s *State) Dir() string { return s.dir }

// Instance returns the name that the directory got when it was created. Queue names and the cookies
// that identify processes include it.
func (s *State) Instance() string { return s.instance }

// OpenState locks a state directory, creating it if necessary. It reads what an earlier supervisor
// left there, kills its processes, and journals those without an exit as lost. It fails if another
// supervisor uses the directory.
func OpenState(dir string) (*State, error) { return OpenStateWith(dir, StateOptions{}) }

// StateOptions configure a state directory.
type StateOptions struct {
	// Instance names a new directory. The default is random.
	Instance string
	// Volatile reports whether the directory is useless after the machine crashes. If so, writes
	// are not synced.
	Volatile bool
}

// OpenStateWith is OpenState with options.
func OpenStateWith(dir string, o StateOptions) (*State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	// The directory may exist with a mode that lets other users in.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("securing the state directory: %w", err)
	}
	s := &State{dir: dir, boot: boot, volatile: o.Volatile}
	if s.lock, err = waitLock(dir); err != nil {
		return nil, err
	}
	fresh := false
	if s.instance, fresh, err = loadInstance(dir, o); err == nil && fresh {
		s.fresh, s.runs, s.pruned = true, make(map[string]*run), time.Now()
		return s, nil // no process can have a new instance's cookie
	}
	if err == nil {
		err = s.recover()
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Close unlocks the directory. Records that could not be written are lost.
func (s *State) Close() error {
	if s.lock == nil {
		return nil
	}
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, r.journal.close())
	}
	errs = append(errs, s.lock.Close())
	s.lock = nil
	return errors.Join(errs...)
}

// instancePattern matches the instances that OpenState creates.
var instancePattern = lazyregexp.New(`^[a-z0-9]{8}$`)

// InstanceIn returns a state directory's instance, or "" if it does not exist yet.
func InstanceIn(dir string) string {
	raw, err := os.ReadFile(filepath.Join(dir, instanceFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// NewInstance returns an instance for a new state directory.
func NewInstance() string { return strings.ToLower(rand.Text())[:8] }

func loadInstance(dir string, o StateOptions) (name string, fresh bool, err error) {
	path := filepath.Join(dir, instanceFile)
	raw, err := os.ReadFile(path)
	if err == nil && (len(raw) > 0 || !o.Volatile) {
		name = strings.TrimSpace(string(raw))
		if !instancePattern().MatchString(name) {
			return "", false, fmt.Errorf("%s is damaged; it must contain 8 letters and digits. Remove the state directory, with its journals, to start over", path)
		}
		return name, false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", false, fmt.Errorf("reading the host worker's ID: %w", err)
	}
	name = cmp.Or(o.Instance, NewInstance())
	write := atomicfile.WriteSynced
	if o.Volatile {
		write = os.WriteFile // an earlier supervisor may have been killed before it wrote the file
	}
	if err := write(path, []byte(name+"\n"), 0o600); err != nil {
		return "", false, fmt.Errorf("writing the host worker's ID: %w", err)
	}
	return name, true, nil
}

func (s *State) journalPath(hash string) string { return journalIn(s.dir, hash+openJournal) }

func (s *State) releasedPath(hash string) string { return journalIn(s.dir, hash+releasedJournal) }

func journalIn(dir, name string) string { return filepath.Join(dir, name) }

// Journals returns the paths of a run's journal in a state directory before and after its release.
func Journals(dir string, run runkey.Run) (open, released string) {
	hash := runHash(run)
	return journalIn(dir, hash+openJournal), journalIn(dir, hash+releasedJournal)
}

// archive renames a released run's closed journal so that OpenState does not read it.
func (s *State) archive(r *run) error {
	return os.Rename(s.journalPath(r.hash), s.releasedPath(r.hash))
}

// prune deletes journals of runs released long ago.
func (s *State) prune(now time.Time) {
	_ = eachJournal(s.dir, releasedJournal, func(path, _ string) error {
		if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > keepReleased {
			_ = os.Remove(path)
		}
		return nil
	})
}

// recover handles what an earlier supervisor left, for OpenState.
func (s *State) recover() error {
	now := time.Now()
	s.prune(now)
	s.pruned = now
	var err error
	if s.runs, err = loadRuns(s.dir); err != nil {
		return err
	}
	swept := sweepHost(context.Background(), s.sweepPlan(lastSign(s.runs)))
	for hash, r := range s.runs {
		r.journal.volatile = s.volatile
		s.loseRest(r, swept)
		// Keep even an old journal, because until the release its run may be open.
		if r.released != nil && r.journal.close() == nil && s.archive(r) == nil {
			delete(s.runs, hash)
		}
	}
	return nil
}

// loseRest journals an exit for each process without one, whether it was started or about to be
// started.
func (s *State) loseRest(r *run, swept sweepResult) {
	r.each(func(p *process) {
		if p.Exit != nil {
			return
		}
		exit := &Exit{Code: -9, Lost: true, Ended: time.Now().UTC(), BootNanos: BootNanos()}
		if p.PID != 0 && swept.left[p.PID] {
			exit.Unkillable, exit.Left = true, []Survivor{{p.PID, p.ticks}}
		}
		p.Exit = exit
		p.phase = ended
		close(p.done)
		// If the disk is full, the record stays in memory, and the next OpenState comes to the same
		// result.
		_ = r.journal.keep(record{
			Type: recExited, Generation: p.Key.Generation, Task: p.Key.Task, Number: p.Number, Exit: exit,
		})
	})
}

// lastSign returns when an earlier supervisor was last known to be alive.
func lastSign(runs map[string]*run) time.Time {
	var last time.Time
	for _, r := range runs {
		if r.touched.After(last) {
			last = r.touched
		}
	}
	return last
}
