package homeworker

import (
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// request is a message from a command. The first one sets Serve, and the supervisor's socket
// precedes it.
type request struct {
	Serve *supervised `json:"serve,omitempty"`
	Start *start      `json:"start,omitempty"`
	// Leave reports that the side has nothing more to report.
	Leave bool `json:"leave,omitempty"`
}

// supervised describes a supervisor.
type supervised struct {
	Options workers.Options `json:"options"`
	PID     int             `json:"pid"`
	Environ []string        `json:"environ"`
	Log     string          `json:"log"`
}

// start requests that a run be started, and its end reported.
type start struct {
	Spec    *spec.RunSpec      `json:"spec"`
	Options starter.Options    `json:"options"`
	Source  *sourcecode.Source `json:"source,omitempty"` // gathered from the options
}

func (s start) options() starter.Options {
	s.Options.Source = sourcecode.Known(s.Source)
	return s.Options
}

// event is a message to a command.
type event struct {
	// Execution is the started run's execution, and Refused why no run was started.
	Execution string `json:"execution,omitempty"`
	Refused   string `json:"refused,omitempty"`
	Running   bool   `json:"running,omitempty"` // a run with the ID is already running
	// Trouble is why the run is stuck, or empty once it makes progress again. Stuck is set if
	// the server answers.
	Trouble *string             `json:"trouble,omitempty"`
	Stuck   *starter.StuckError `json:"stuck,omitempty"`
	// Ended reports that the run has ended. Result may be nil.
	Ended  bool            `json:"ended,omitempty"`
	Result *spec.RunResult `json:"result,omitempty"`
}
