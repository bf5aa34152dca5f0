package top

import (
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// Kind is one of the views.
type Kind string

// The values of [Kind].
const (
	Runs   Kind = "runs"
	Tasks  Kind = "tasks"
	Queue  Kind = "queue"
	Hosts  Kind = "hosts"
	Output Kind = "output"
)

// Subject identifies the data that a view needs.
type Subject struct {
	Kind Kind
	// Run is the run of Tasks and Output. Execution selects one of the runs with its ID. If it
	// is empty, it is the latest.
	Run, Execution string
	// Task is the task of Output. If it is empty, the output is of all tasks of the run.
	Task string
}

// These are the messages of [Model.Update].
type (
	// Key is the name of a key: "a", "up", "enter", "ctrl+c".
	Key string
	// Size is the size of the terminal.
	Size struct{ Width, Height int }
	// Found is the fetched data of a subject: the field of its kind is set, or Err.
	Found struct {
		Subject Subject
		// At is the time at which it was fetched.
		At     time.Time
		Runs   []starter.Summary
		Status *starter.Status
		Queue  []fleet.Waiting
		Hosts  []fleet.HostStatus
		// Lines are the lines since the last time.
		Lines []string
		// Last are the last lines of tasks, by name.
		Last map[string]string
		Err  error
	}
	// Note is a text for the last line, such as the outcome of an action.
	Note string
)

// Verb is an operation, named like the command that performs it.
type Verb string

// The values of [Verb].
const (
	Stop    Verb = "stop"
	Kill    Verb = "stop --kill"
	Restart Verb = "restart"
	Stacks  Verb = "stacks"
)

// These are the actions that [Model.Update] returns.
type (
	// Quit ends the program.
	Quit struct{}
	// Suspend gives the terminal back to the shell for a while.
	Suspend struct{}
	// Fetch fetches the data of the view now.
	Fetch struct{}
	// Action was confirmed.
	Action struct {
		Verb           Verb
		Run, Execution string
		// Task is empty if the action is for the whole run.
		Task string
	}
)

// mostLines is the most lines of output that are kept.
const mostLines = 5000

// Model is the state of the program. The zero value shows runs.
type Model struct {
	width, height int
	stack         []screen // under the current one
	screen
	help   bool
	typing bool // the filter
	asked  *Action
	note   string
}

// screen is one view, with its data.
type screen struct {
	subject Subject
	found   Found
	words   []string // the states of the tasks
	counts  string   // the number of tasks in each state
	lines   []string
	loaded  bool
	filter  string
	shown   []int // the rows that match the filter, in their order
	cursor  int   // in shown
	top     int   // the first row on the screen
	held    bool  // output does not follow its end
}

// New returns the model that begins with the tasks of a run or, if run is empty, with the runs.
func New(run string) Model {
	m := Model{width: 80, height: 24}
	m.subject.Kind = Runs
	if run != "" {
		m.push(Subject{Kind: Tasks, Run: run})
	}
	return m
}

// Subject returns the subject of the current view.
func (m *Model) Subject() Subject { return m.subject }

// InView returns the tasks on the screen.
func (m *Model) InView() []starter.TaskStatus {
	if m.subject.Kind != Tasks || m.found.Status == nil {
		return nil
	}
	var tasks []starter.TaskStatus
	for i := m.top; i < min(len(m.shown), m.top+m.rows()); i++ {
		tasks = append(tasks, m.found.Status.Tasks[m.shown[i]])
	}
	return tasks
}

func (m *Model) push(s Subject) {
	m.stack = append(m.stack, m.screen)
	m.screen = screen{subject: s}
}

// rows returns the number of rows of a table on the screen.
func (m *Model) rows() int { return max(1, m.height-4) }
