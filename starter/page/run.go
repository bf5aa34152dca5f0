package page

import (
	"cmp"
	"io"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// RunPage is a run's page.
type RunPage struct {
	Frame
	*starter.Status
	// State is the state as a word, such as "running" or "timed out".
	State string
	Tone  Tone
	// Hosts counts the hosts. Restarts counts the restarted processes or, if the group restarts,
	// the group's restarts.
	Hosts, Restarts int
	ExitCode        int
	Progress        *Progress
	// Cause is why the run ended. It is nil if the run is open or has succeeded.
	Cause *Cause
	// Notices are facts that need attention: silent hosts, what a run waits for, slow tasks.
	Notices []Notice
	Actions []Action
	Tasks   Tasks
	// Sweep is set for a sweep, which has trials instead of tasks and output.
	Sweep    *Sweep
	Output   Output
	Timeline Timeline
	// Stacks compares the tasks' stacks as last captured. It is nil if none were captured.
	Stacks   *stacktree.Findings
	Barriers []Barrier
	Series   []Series
	// Charted lists the ranks with their own line in the series' charts.
	Charted []int
	// Spec is the spec as YAML, without secrets. NoSpec is why it is missing.
	Spec, NoSpec string
	// Starts describes how the processes were started.
	Starts []Start
	// Commands are commands to copy.
	Commands []Command
}

// Progress is the tasks' progress.
type Progress struct {
	// Least and Most are the minimum and maximum progress of the tasks, from 0 to 1.
	Least, Most float64
	// Left is the remaining time, or 0 if unknown.
	Left    time.Duration
	Message string
}

// Cause is why a run ended.
type Cause struct {
	// Sentence states the cause.
	Sentence string
	// Task, Rank and Host identify the process that failed first. Task is empty if the cause is
	// not a process.
	Task string
	Rank int
	Host string
	PID  int
	At   time.Time
	// Words is the traceback, or the program's last words.
	Words string
	// FirstError is the first error in the output, if Words does not contain it.
	FirstError string
	// Details are further lines: other tasks' exits, restarts.
	Details []string
}

// Notice is a fact that needs attention.
type Notice struct {
	Tone Tone
	Text string
	// Items holds details.
	Items []string
}

// Barrier is a barrier with waiting tasks.
type Barrier struct {
	barriers.Barrier
	// MoreWaiting and MoreMissing count those omitted.
	MoreWaiting, MoreMissing int
}

// Start describes how processes were started.
type Start struct {
	Tasks string
	*tasklog.Start
}

// Command is a command to copy.
type Command struct{ What, Line string }

// maxSpec is how many bytes of a spec are shown.
const maxSpec = 128 << 10

// AddSpec adds a run's spec.
func (p *RunPage) AddSpec(s *spec.RunSpec) {
	text, err := s.WithoutSecrets().YAML()
	if err != nil {
		return
	}
	p.Spec = string(text)
	if more := len(p.Spec) - maxSpec; more > 0 {
		p.Spec = p.Spec[:maxSpec] + "\n# " + plural.Of(more, "byte more", "bytes more") + "\n"
	}
}

// RenderRun writes a run's page.
func RenderRun(w io.Writer, p *RunPage, m Mode) error {
	model := *p
	model.mode = m
	model.Title = cmp.Or(model.Title, p.RunID+" · "+p.State)
	return render(w, "run", &model)
}

// Took returns the time since the start, or until the end.
func (p *RunPage) Took() string {
	if p.Open {
		return units.Span(p.At.Sub(p.Started))
	}
	return units.Span(p.Ended.Sub(p.Started))
}

// IsFailure reports whether the run has failed.
func (p *RunPage) IsFailure() bool { return p.Tone == Bad || p.Tone == Culprit }

// CulpritTone and WarningTone are tones for templates.
func (p *RunPage) CulpritTone() Tone { return Culprit }

// WarningTone is a warning's tone.
func (p *RunPage) WarningTone() Tone { return Warning }
