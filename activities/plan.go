package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// plan is a host's record of a run that has tasks on the host. It is on disk before Reserve
// answers, so that any later host worker can serve the run.
type plan struct {
	Run        runkey.Run    `json:"run"`
	Generation int           `json:"generation"`
	Spec       *spec.RunSpec `json:"spec"`
	// Signers are the principals of the key that signed the run, according to this host's policy.
	Signers []string `json:"signers,omitempty"`
	// Statement is the ID of the spec if this host has a policy. It also covers the signer, if any.
	Statement string `json:"statement,omitempty"`
	// Tasks names the tasks placed here.
	Tasks []string `json:"tasks"`
	// Added are tasks started outside the spec, or with another command.
	Added map[string]addedTask `json:"added,omitempty"`
	// Devices are the GPUs of this host that the fleet gave the run.
	Devices []string        `json:"devices,omitempty"`
	Cluster hostapi.Cluster `json:"cluster"`
	// As is the policy's name for the tasks' user, and User is that user. For the host worker's own
	// user they are empty and nil.
	As   string         `json:"as,omitempty"`
	User *hostuser.User `json:"user,omitempty"`
	// LogRoot is the directory for the logs of runs.
	LogRoot string `json:"log_root"`
	// Firsts contains the number of the first process for each generation that does not start at 0.
	// A task's processes are numbered throughout its life, but the supervisor numbers them from 0
	// in each generation.
	Firsts map[int]int `json:"firsts,omitempty"`
	// Elapsed is the run time before this plan was made.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Deadline is the end of max_run_time on CLOCK_BOOTTIME of the boot with BootID, and
	// DeadlineWall is the same time on the wall clock, for another boot. They are 0 if there is no
	// limit or no task was started yet.
	Deadline     int64     `json:"deadline,omitempty"`
	DeadlineWall time.Time `json:"deadline_wall,omitzero"`
	BootID       string    `json:"boot_id"`
	// Server is the run's [Server.Identity].
	Server   string    `json:"server,omitempty"`
	Reserved time.Time `json:"reserved"`
	// Released reports whether the run has released this host. The plan is kept until the run is
	// closed, so that a repeated release gets the same answer.
	Released bool `json:"released,omitempty"`
	// Stuck are the tasks with processes that survived SIGKILL. They hold their slots and GPUs.
	Stuck []stuckTask `json:"stuck,omitempty"`
	// Sealed reports whether further starts on this host are prevented.
	Sealed bool `json:"sealed,omitempty"`
	// Witnesses are the hosts that extend this host's leases, if hosts extend each other's, and
	// Denied the promises of this host; see [hostservice.Witnesses].
	Witnesses []spec.HostService `json:"witnesses,omitempty"`
	Denied    map[string]int64   `json:"denied,omitempty"`
	// Notes are written by the services of the run's tasks.
	taskservices.Notes

	// bounds are the two bounds of the lease with which the run offers a task, or nil.
	bounds *lease.Bounds
}

// sealed reports whether further starts on this host are currently prevented. A stop of all tasks
// can be cleared later, and a notice is for this generation.
func (p *plan) sealed() bool {
	return p.Sealed || p.Stopping != nil && (p.Stopping.Stop || p.Stopping.Notice != nil)
}

func (p *plan) task(name string) (spec.Task, bool) {
	if a, ok := p.Added[name]; ok {
		return a.Task, true
	}
	return p.Spec.Task(name)
}

// forServices returns the run in the form that its tasks' services use.
func (p *plan) forServices() taskservices.Run {
	return taskservices.Run{
		Key: p.Run, Generation: p.Generation, Spec: p.Spec,
		Added:  slices.Collect(maps.Keys(p.Added)),
		Sealed: p.sealed(), Released: p.Released, Notes: p.Notes,
	}
}

// runDir returns the run's log directory, or an empty string if the run keeps no files.
func (p *plan) runDir() string {
	if p.LogRoot == spec.NullDir {
		return ""
	}
	return p.runDirBelow(p.LogRoot)
}

func (p *plan) runDirBelow(root string) string {
	return tasklog.RunDir(root, p.Run.WorkflowID, p.Run.RunID)
}

func (p *plan) number(q supervisor.Process) int { return p.Firsts[q.Key.Generation] + q.Number }

// errNoPlan is returned if this host does not have a plan for the run, because the run was released
// or was reserved with another state directory.
var errNoPlan = errors.New("this host has no record of the run")

// planStore keeps plans as one JSON file per run, and in memory.
type planStore struct {
	dir string

	// mu is never held during file access, so a slow disk blocks neither readers nor other runs.
	mu    sync.RWMutex
	plans map[runkey.Run]*plan
	// changing contains the runs whose plans are being changed or are waiting to be changed.
	changing map[runkey.Run]*planLock
	// changes receives a new value after each change.
	changes background.Feed[struct{}]
	// damaged are the files that were set aside when the store was opened.
	damaged []string
}

func openPlans(stateDir string) (*planStore, error) {
	s := &planStore{dir: PlansDir(stateDir), plans: map[runkey.Run]*plan{}, changing: map[runkey.Run]*planLock{}}
	if err := os.Mkdir(s.dir, 0o700); err == nil {
		return s, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read a run's file: %w", err)
		}
		var p plan
		if err := json.Unmarshal(b, &p); err != nil {
			// Other runs must continue; the run of the damaged plan is host-lost.
			if err := os.Rename(f, f+".damaged"); err != nil {
				return nil, fmt.Errorf("the file %s of a run is damaged and cannot be set aside: %w", f, err)
			}
			s.damaged = append(s.damaged, f+".damaged")
			continue
		}
		s.plans[p.Run] = &p
	}
	return s, nil
}

// get returns a copy that the caller may read without holding a lock. Slices and maps in it are
// never changed in place.
func (s *planStore) get(run runkey.Run) (*plan, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.plans[run]
	if !ok {
		return nil, errNoPlan
	}
	c := *p
	return &c, nil
}

// all returns the plans, oldest first.
func (s *planStore) all() []*plan {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*plan, 0, len(s.plans))
	for _, p := range s.plans {
		c := *p
		out = append(out, &c)
	}
	slices.SortFunc(out, func(a, b *plan) int { return a.Reserved.Compare(b.Reserved) })
	return out
}

// Run implements [taskservices.Plans].
func (s *planStore) Run(run runkey.Run) (taskservices.Run, error) {
	p, err := s.get(run)
	if err != nil {
		return taskservices.Run{}, err
	}
	return p.forServices(), nil
}

// Note implements [taskservices.Plans].
func (s *planStore) Note(run runkey.Run, change func(*taskservices.Notes)) (taskservices.Run, error) {
	p, err := s.change(run, func(p *plan) error {
		change(&p.Notes)
		return nil
	})
	if err != nil {
		return taskservices.Run{}, err
	}
	return p.forServices(), nil
}

// change changes a run's existing plan, and returns it once it is on disk.
func (s *planStore) change(run runkey.Run, change func(*plan) error) (*plan, error) {
	return s.update(run, func(p *plan) (*plan, error) {
		if p == nil {
			return nil, errNoPlan
		}
		return p, change(p)
	})
}

// update is like change, but passes nil if there is no plan yet, and keeps the plan that the
// function returns. Changes to one run's plan are serialized.
func (s *planStore) update(run runkey.Run, change func(*plan) (*plan, error)) (*plan, error) {
	defer s.lock(run)()
	old, err := s.get(run)
	if err != nil {
		old = nil
	}
	p, err := change(old)
	if err != nil {
		return nil, err
	}
	if err := s.write(p); err != nil {
		return nil, err
	}
	c := *p
	s.mu.Lock()
	s.plans[run] = p
	s.mu.Unlock()
	s.changed()
	return &c, nil
}

// planLock is held while a run's plan is changed, until it is on disk.
type planLock struct {
	sync.Mutex
	users int // holders and waiters; guarded by planStore.mu
}

// lock locks a run's plan, which need not exist, against concurrent changes.
func (s *planStore) lock(run runkey.Run) (unlock func()) {
	s.mu.Lock()
	l := s.changing[run]
	if l == nil {
		l = new(planLock)
		s.changing[run] = l
	}
	l.users++
	s.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.changing, run)
		}
	}
}

func (s *planStore) write(p *plan) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// A plan needs fsync only if it contains promises to the run. The fact that a process was
	// started must also survive a power cut, but the supervisor's journal records that.
	write := atomicfile.Write
	if len(p.Denied) > 0 {
		write = atomicfile.WriteSynced
	}
	if err := write(s.path(p.Run), b, 0o600); err != nil {
		return fmt.Errorf("store the run's file: %w", err)
	}
	return nil
}

func (s *planStore) drop(run runkey.Run) error {
	defer s.lock(run)()
	s.mu.Lock()
	delete(s.plans, run)
	s.mu.Unlock()
	s.changed()
	if err := os.Remove(s.path(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *planStore) changed() { s.changes.Add(struct{}{}, func(struct{}) bool { return true }) }

func (s *planStore) path(run runkey.Run) string {
	sum := sha256.Sum256([]byte(run.Namespace + "\x00" + run.WorkflowID + "\x00" + run.RunID))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".json")
}

// Holds reports whether the host worker with the given state directory still holds a run. The host
// worker need not be running.
func Holds(stateDir string, run runkey.Run) bool {
	journal, _ := supervisor.Journals(stateDir, run)
	plan := (&planStore{dir: PlansDir(stateDir)}).path(run)
	return slices.ContainsFunc([]string{plan, journal}, func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist) // a file that cannot be checked may exist
	})
}
