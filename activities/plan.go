package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/atomicfile"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskenv"
	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// plan is what a host knows of a run that has tasks on it. It is on disk
// before Reserve answers, so that any later host worker can serve the run.
type plan struct {
	Run        supervisor.RunKey `json:"run"`
	Generation int               `json:"generation"`
	Spec       *spec.RunSpec     `json:"spec"`
	// Tasks names those placed here.
	Tasks []string `json:"tasks"`
	// Added are tasks started outside the spec, or with another command.
	Added   map[string]addedTask `json:"added,omitempty"`
	Cluster taskenv.Cluster      `json:"cluster"`
	// LogRoot is the log directory that holds those of the runs.
	LogRoot string `json:"log_root"`
	// Firsts has the number of the first process of each generation that does not
	// begin at 0. Processes are numbered over the life of a task, and the
	// supervisor numbers them anew in each generation.
	Firsts map[int]int `json:"firsts,omitempty"`
	// Elapsed is the run time before this plan was made.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Deadline ends max_run_time, on CLOCK_BOOTTIME of the boot it was made in,
	// and DeadlineWall on the wall clock, for another boot. 0: none, or no task
	// was started yet.
	Deadline     int64     `json:"deadline,omitempty"`
	DeadlineWall time.Time `json:"deadline_wall,omitzero"`
	BootID       string    `json:"boot_id"`
	// Server is the [Server.Identity] of the server that the run is on.
	Server   string    `json:"server,omitempty"`
	Reserved time.Time `json:"reserved"`
	// Released: the run has given this host back. The plan stays until the run is
	// closed, so that a release that is asked for again answers the same.
	Released bool `json:"released,omitempty"`
	// Served: tasks have served or scheduled closures here, so that the run has a queue
	// of them.
	Served bool `json:"served,omitempty"`
	// Calls names the closures that processes exited with 0 in the middle of: those
	// have failed. Only this host worker's predecessor may have known.
	Calls []endedCall `json:"calls,omitempty"`
	// Serving has the tasks that serve here, each with the life of the broker that its
	// process has asked last. One that leaves in order is not in it any more.
	Serving map[string]string `json:"serving,omitempty"`
	// Coordinators are the tasks that have scheduled closures here.
	Coordinators []string `json:"coordinators,omitempty"`
	// Sealed: nothing is started again on this host.
	Sealed bool `json:"sealed,omitempty"`
	// Stopping is the last that the run said of stopping together.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
}

// sealed: nothing is started again on this host. That the tasks stop together can
// be taken back.
func (p *plan) sealed() bool { return p.Sealed || p.Stopping != nil && p.Stopping.Stop }

// task finds a task of the run by name.
func (p *plan) task(name string) (spec.Task, bool) {
	if a, ok := p.Added[name]; ok {
		return a.Task, true
	}
	return p.Spec.Task(name)
}

// runDir is the log directory of the run; none where the run keeps no files.
func (p *plan) runDir() string {
	if p.LogRoot == spec.NullDir {
		return ""
	}
	return p.runDirBelow(p.LogRoot)
}

func (p *plan) runDirBelow(root string) string {
	return tasklog.RunDir(root, p.Run.WorkflowID, p.Run.RunID)
}

// number is a process's among all of its task.
func (p *plan) number(q supervisor.Process) int { return p.Firsts[q.Key.Generation] + q.Number }

// errNoPlan: this host knows nothing of the run. Either it was released, or the
// state directory is not the one the run was reserved with.
var errNoPlan = errors.New("this host has no plan of the run")

// planStore keeps plans as one JSON file per run, and in memory.
type planStore struct {
	dir string

	mu    sync.Mutex
	plans map[supervisor.RunKey]*plan
	// damaged are the files that were set aside when the store was opened.
	damaged []string
}

func openPlans(stateDir string) (*planStore, error) {
	s := &planStore{dir: filepath.Join(stateDir, "plans"), plans: map[supervisor.RunKey]*plan{}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read a plan: %w", err)
		}
		var p plan
		if err := json.Unmarshal(b, &p); err != nil {
			// The others have to go on; the run of this one is host-lost.
			if err := os.Rename(f, f+".damaged"); err != nil {
				return nil, fmt.Errorf("plan %s is damaged, and cannot be set aside: %w", f, err)
			}
			s.damaged = append(s.damaged, f+".damaged")
			continue
		}
		s.plans[p.Run] = &p
	}
	return s, nil
}

// get returns a copy that the caller may read without holding a lock. Slices
// and maps in it are never changed in place.
func (s *planStore) get(run supervisor.RunKey) (*plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.plans[run]
	if !ok {
		return nil, errNoPlan
	}
	c := *p
	return &c, nil
}

// all lists the plans, the oldest first.
func (s *planStore) all() []*plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*plan, 0, len(s.plans))
	for _, p := range s.plans {
		c := *p
		out = append(out, &c)
	}
	slices.SortFunc(out, func(a, b *plan) int { return a.Reserved.Compare(b.Reserved) })
	return out
}

// served is the plan of a run that is not released, by the run's first execution; nil
// if there is none. It is asked for with every lease, so it copies no other.
func (s *planStore) served(key servedKey) *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plans {
		if !p.Released && p.Run.WorkflowID == key.workflowID && servedKeyOf(p) == key {
			c := *p
			return &c
		}
	}
	return nil
}

// update changes the plan of a run under the store's lock and writes it. A nil
// plan given to change means that there is none yet; the one it returns is kept.
func (s *planStore) update(run supervisor.RunKey, change func(*plan) (*plan, error)) (*plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old *plan
	if p, ok := s.plans[run]; ok {
		c := *p
		old = &c
	}
	p, err := change(old)
	if err != nil {
		return nil, err
	}
	if err := s.write(p); err != nil {
		return nil, err
	}
	s.plans[run] = p
	c := *p
	return &c, nil
}

func (s *planStore) write(p *plan) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	// A plan needs no fsync: what must survive a power cut is that a process
	// was started, and that is in the supervisor's journal.
	if err := atomicfile.Write(s.path(p.Run), b, 0o600); err != nil {
		return fmt.Errorf("keep the plan of the run: %w", err)
	}
	return nil
}

func (s *planStore) drop(run supervisor.RunKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.plans, run)
	if err := os.Remove(s.path(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *planStore) path(run supervisor.RunKey) string {
	sum := sha256.Sum256([]byte(run.Namespace + "\x00" + run.WorkflowID + "\x00" + run.RunID))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".json")
}
