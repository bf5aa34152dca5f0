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
	journalDir   = "journal"
	// The ends of the names of journals.
	openJournal     = ".jsonl"
	releasedJournal = ".released"
	// keepReleased is the time for which a run can be read after its release.
	keepReleased = 7 * 24 * time.Hour
)

// State is the state directory of a supervisor, locked.
type State struct {
	dir      string
	instance string
	boot     string
	lock     *os.File
	volatile bool // see StateOptions
	fresh    bool // it is new: this supervisor has written all that is in it
	runs     map[string]*run
	pruned   time.Time // time of the last prune; guarded by supervisor.mu while one runs
}

// Dir returns the absolute path of the directory.
func (s *State) Dir() string { return s.dir }

// Instance returns the name that the directory got when it was created. It is part of the
// names of queues and of the cookies by which processes are found again.
func (s *State) Instance() string { return s.instance }

// OpenState locks a state directory, which it creates if necessary, reads what an earlier
// supervisor left there, kills what still runs of that, and journals every process without an
// exit as lost. It fails while another supervisor uses the directory.
func OpenState(dir string) (*State, error) { return OpenStateWith(dir, StateOptions{}) }

// StateOptions say how a state directory is used.
type StateOptions struct {
	// Instance is the instance for a new directory. By default it is random.
	Instance string
	// Volatile reports whether the directory is of no use after the machine has crashed: then
	// nothing waits for the disk.
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
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	for _, d := range []string{dir, filepath.Join(dir, journalDir)} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("making the state directory: %w", err)
		}
		// It may exist with a mode that gives others access.
		if err := os.Chmod(d, 0o700); err != nil {
			return nil, fmt.Errorf("securing the state directory: %w", err)
		}
	}
	s := &State{dir: dir, boot: boot, volatile: o.Volatile}
	if s.lock, err = waitLock(dir); err != nil {
		return nil, err
	}
	fresh := false
	if s.instance, fresh, err = loadInstance(dir, o); err == nil && fresh {
		s.fresh, s.runs, s.pruned = true, make(map[string]*run), time.Now()
		return s, nil // no process can have a cookie of a new instance
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

// instancePattern matches the instances that OpenState makes.
var instancePattern = lazyregexp.New(`^[a-z0-9]{8}$`)

// InstanceIn returns the instance of a state directory, or empty if it does not exist yet.
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
			return "", false, fmt.Errorf("%s is damaged; it must have 8 letters and digits. Remove the state directory, with its journals, to start over", path)
		}
		return name, false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", false, fmt.Errorf("reading the ID of the host worker: %w", err)
	}
	name = cmp.Or(o.Instance, NewInstance())
	write := atomicfile.WriteSynced
	if o.Volatile {
		write = os.WriteFile // an earlier one may have been killed before it wrote
	}
	if err := write(path, []byte(name+"\n"), 0o600); err != nil {
		return "", false, fmt.Errorf("writing the ID of the host worker: %w", err)
	}
	return name, true, nil
}

func (s *State) journalPath(hash string) string { return journalIn(s.dir, hash+openJournal) }

func (s *State) releasedPath(hash string) string { return journalIn(s.dir, hash+releasedJournal) }

func journalIn(dir, name string) string { return filepath.Join(dir, journalDir, name) }

// Journals returns the paths of the journal of a run in a state directory: before and after
// its release.
func Journals(dir string, run runkey.Run) (open, released string) {
	hash := runHash(run)
	return journalIn(dir, hash+openJournal), journalIn(dir, hash+releasedJournal)
}

// archive gives the closed journal of a released run a name by which OpenState does not read it.
func (s *State) archive(r *run) error {
	return os.Rename(s.journalPath(r.hash), s.releasedPath(r.hash))
}

// prune deletes journals that were released long ago.
func (s *State) prune(now time.Time) {
	_ = eachJournal(s.dir, releasedJournal, func(path, _ string) error {
		if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > keepReleased {
			_ = os.Remove(path)
		}
		return nil
	})
}

// recover is the part of OpenState that deals with an earlier supervisor.
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
		// A journal stays however old it is: until the release its run may be open.
		if r.released != nil && r.journal.close() == nil && s.archive(r) == nil {
			delete(s.runs, hash)
		}
	}
	return nil
}

// loseRest journals an exit for the processes without one: those that were started, and
// those that were about to be.
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
		// On a full disk it stays in memory; the next OpenState comes to the same result.
		_ = r.journal.keep(record{
			Type: recExited, Generation: p.Key.Generation, Task: p.Key.Task, Number: p.Number, Exit: exit,
		})
	})
}

// lastSign returns the last time at which an earlier supervisor is known to have lived.
func lastSign(runs map[string]*run) time.Time {
	var last time.Time
	for _, r := range runs {
		if r.touched.After(last) {
			last = r.touched
		}
	}
	return last
}
