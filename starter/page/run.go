package page

import (
	"io"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// RunPage is the page of a run.
type RunPage struct {
	Frame
	ID, ExecutionID, Name string
	Owner, Command, Dir   string
	Queue                 string
	// State is the state in a word, such as "running" or "timed out".
	State string
	Tone  Tone
	// Open reports whether the run has not ended.
	Open           bool
	Started, Ended time.Time
	Hosts          int
	Restarts       int
	ExitCode       int
	Progress       *Progress
	// Cause says why the run ended. It is nil if the run is open or has succeeded.
	Cause *Cause
	// Notices are facts that need attention: silent hosts, what a run waits for, slow tasks.
	Notices  []Notice
	Actions  []Action
	Tasks    Tasks
	Output   Output
	Timeline Timeline
	// Stacks compares the stacks of the tasks as of their last capture; nil if there are none.
	Stacks   *stacktree.Findings
	Barriers []Barrier
	Series   []Series
	// Charted are the ranks that have a line of their own in the charts of the series.
	Charted []int
	// Spec is the spec as YAML, and Starts describes how the processes were started.
	Spec   string
	NoSpec string // why there is no spec
	Starts []Start
	// Commands are commands to copy.
	Commands []Command
}

// Progress is the progress of the tasks: the least and the greatest.
type Progress struct {
	// Least and Most are between 0 and 1.
	Least, Most float64
	Left        time.Duration // 0 if unknown
	Message     string
}

// Cause is why a run ended.
type Cause struct {
	// Sentence states the cause.
	Sentence string
	// Task, Rank and Host name the process that failed first. Task is empty if there is none.
	Task string
	Rank int
	Host string
	PID  int
	At   time.Time
	// Words are the traceback, or the last words of the program.
	Words string
	// FirstError is the first error in the output, if it is not in Words.
	FirstError string
	// Details are further lines: the ends of other tasks, restarts.
	Details []string
}

// Notice is a fact that needs attention.
type Notice struct {
	Tone Tone
	Text string
	// Items are details.
	Items []string
}

// Output is a part of the output of a run, merged by time.
type Output struct {
	Lines []OutputLine
	// Filter is the selection of lines.
	Filter OutputFilter
	// Cut says which part of the output is left out; empty if all is shown.
	Cut string
	// Missing says which output cannot be read, and why; a line each.
	Missing []string
}

// OutputFilter selects lines of output. The server gets it as the query parameters ranks,
// search and stderr.
type OutputFilter struct {
	// Ranks are as in 0-3,8; all if empty.
	Ranks  string
	Search string
	Stderr bool
}

// OutputLine is a line that some ranks wrote alike.
type OutputLine struct {
	// At is about when it was written; zero if unknown.
	At time.Time
	// Task and Rank are of the first that wrote it. Ranks has all, as in 0-47.
	Task  string
	Rank  int
	Ranks string
	// Count is the number of lines in one.
	Count  int
	Stderr bool
	Text   string
	Tone   Tone // Culprit or Muted for these; else Active
}

// Barrier is a barrier at which tasks wait.
type Barrier struct {
	Name             string
	Round            int
	Opened, Deadline time.Time
	Unanswered       bool
	// Waiting and Missing are the tasks at the barrier, and the others.
	Waiting, Missing []BarrierTask
	// MoreWaiting and MoreMissing count those that are left out.
	MoreWaiting, MoreMissing int
}

// BarrierTask is a task at a barrier.
type BarrierTask struct {
	Task, Host string
	Since      time.Time
	State      string
}

// Start describes how processes were started.
type Start struct {
	Tasks, Version, Dir string
	Args                []string
	Set                 []Variable
	Inherited           []string
}

// Variable is a variable of the environment. Value is empty if Hidden is set.
type Variable struct {
	Name, Value string
	Hidden      bool
}

// Command is a command to copy.
type Command struct{ What, Line string }

// RenderRun writes the page of a run.
func RenderRun(w io.Writer, p *RunPage, m Mode) error {
	model := *p
	model.mode = m
	return render(w, "run", &model)
}

// Took returns the time since the start, or until the end.
func (p *RunPage) Took() string {
	if p.Open {
		return span(p.At.Sub(p.Started))
	}
	return span(p.Ended.Sub(p.Started))
}

// CulpritTone is the tone of the root cause.
func (p *RunPage) CulpritTone() Tone { return Culprit }
