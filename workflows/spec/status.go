package spec

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// TaskState says where a task is in its life.
type TaskState string

// The values of [TaskState].
const (
	TaskPending  TaskState = "pending"  // not started yet
	TaskRunning  TaskState = "running"  // its RunTask activity is open
	TaskStopping TaskState = "stopping" // asked to end
	TaskEnded    TaskState = "ended"
)

// RunState says where a run is in its life.
type RunState string

// The values of [RunState].
const (
	RunPlacing    RunState = "placing"    // hosts are being reserved
	RunRunning    RunState = "running"    // tasks are started or running
	RunRestarting RunState = "restarting" // the whole group is being started again
	RunStopping   RunState = "stopping"   // the verdict is known, tasks are ending
	RunReleasing  RunState = "releasing"  // hosts are being given back
	RunEnded      RunState = "ended"
)

// Status is the answer of the status query. Process IDs and restarts are not
// in it: they live in the heartbeat details of the activities and cost the run
// no history.
type Status struct {
	State      RunState     `json:"state"`
	Generation int          `json:"generation"`
	Started    time.Time    `json:"started,omitzero"`
	Tasks      []TaskStatus `json:"tasks"`
	// GroupRestarts are the last restarts of the whole group, the oldest first.
	GroupRestarts []GroupRestart `json:"group_restarts,omitempty"`
	// Elastic is set where the number of hosts may change.
	Elastic *ElasticStatus `json:"elastic,omitempty"`
	// OnDisconnect is what the hosts do while they hear nothing of the server.
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// Stopping is set while the tasks are stopping together.
	Stopping *Stopping `json:"stopping,omitempty"`
	// Stacks is what the tasks were doing when the run looked at that last.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// Archive is what the run ships.
	Archive *Archive `json:"archive,omitempty"`
	// Services are those of the hosts of the run, and of hosts that it has left.
	Services []HostService `json:"services,omitempty"`
	// Result is set once the run has ended.
	Result *RunResult `json:"result,omitempty"`
}

// ElasticStatus is the size of a generation of an elastic run.
type ElasticStatus struct {
	// Range is the fewest and the most hosts, such as 2:4.
	Range HostCount `json:"range"`
	// Hosts is how many this generation has, with so many Tasks; 0: it has none yet.
	Hosts int `json:"hosts"`
	Tasks int `json:"tasks"`
	// Grow is whether the next generation may have more.
	Grow Grow `json:"grow"`
}

// String says "3 of 2:4 hosts, world size 6".
func (e ElasticStatus) String() string {
	if e.Hosts == 0 {
		return fmt.Sprintf("none of %s hosts", e.Range)
	}
	text := fmt.Sprintf("%d of %s hosts, world size %d", e.Hosts, e.Range, e.Tasks)
	if _, most := e.Range.Bounds(); e.Hosts < most && e.Grow == GrowNextGeneration {
		text += "; the next generation has more if there is room"
	}
	return text
}

// HostService is where and how the files of a run can be read that are on a host.
type HostService struct {
	Host string `json:"host"`
	// Address is HOST:PORT.
	Address string `json:"address"`
	// Fingerprint is the SHA-256 of the certificate that the service has, in hex.
	Fingerprint string `json:"fingerprint"`
	// Token allows to read the files of this run.
	Token string `json:"token"`
}

// TaskStatus is one task in a [Status].
type TaskStatus struct {
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Index   int       `json:"index"`
	Rank    int       `json:"rank"`
	Host    string    `json:"host,omitempty"`
	Address string    `json:"address,omitempty"`
	State   TaskState `json:"state"`
	// Activity is the ID of the task's activity, which the server lists as
	// pending while the task runs.
	Activity string `json:"activity,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
}

// Heartbeat is what RunTask reports while a process runs: the details of its
// heartbeats. It stays under 850 bytes.
type Heartbeat struct {
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Restarts int       `json:"restarts"`
	Started  time.Time `json:"started,omitzero"`
	LogDir   string    `json:"log_dir,omitempty"`
	// Progress is how far the task says it has got.
	Progress *Progress `json:"progress,omitempty"`
	// Steps is how long the process takes for a step; nil: it has reported none.
	Steps *StepTime `json:"steps,omitempty"`
	// Usage is what the process used when its host last looked; nil: it has not yet.
	Usage *LiveUsage `json:"usage,omitempty"`
	// LastOutput is when the process last wrote to its files, as of that look; zero: it has
	// not, or has none.
	LastOutput time.Time `json:"last_output,omitzero"`
}

// Fetching is what Reserve reports while a host gets what the run ships: the details of its
// heartbeats.
type Fetching struct {
	Host string `json:"host"`
	// Bytes of Size have been unpacked, or fetched where Unpacking is false.
	Bytes     int64 `json:"bytes"`
	Size      int64 `json:"size"`
	Unpacking bool  `json:"unpacking,omitempty"`
}

// Progress is how far a task has got, by its own account.
type Progress struct {
	Current float64 `json:"current"`
	// Total is where Current ends; 0: nobody knows.
	Total float64 `json:"total,omitempty"`
	// Message is a short text, of at most 100 bytes.
	Message string `json:"message,omitempty"`
}
