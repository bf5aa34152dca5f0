package homeworker

import (
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/source"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// request is a message of a command. The first one has Serve, and the socket of the supervisor
// comes before it.
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

// start asks to start a run, and to report its end.
type start struct {
	Spec    *spec.RunSpec   `json:"spec"`
	Options starter.Options `json:"options"`
	Source  *source.Source  `json:"source,omitempty"` // of the options, gathered
}

func (s start) options() starter.Options {
	s.Options.Source = source.Known(s.Source)
	return s.Options
}

// event is a message to a command.
type event struct {
	// Execution is the execution of the run that was started, and Refused why none was.
	Execution string `json:"execution,omitempty"`
	Refused   string `json:"refused,omitempty"`
	Running   bool   `json:"running,omitempty"` // a run with the ID runs already
	// Trouble is why the run is stuck, or empty once it makes progress again. Stuck is set if the
	// server answers.
	Trouble *string             `json:"trouble,omitempty"`
	Stuck   *starter.StuckError `json:"stuck,omitempty"`
	// Ended reports the end, and Result the result, if there is one.
	Ended  bool            `json:"ended,omitempty"`
	Result *spec.RunResult `json:"result,omitempty"`
}
