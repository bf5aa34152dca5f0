package spec

import (
	"fmt"
	"time"
)

// GroupRestart is why the whole group of tasks was started again.
type GroupRestart struct {
	// Generation is the number of the launch of the group that followed, from 1.
	Generation int `json:"generation"`
	// Attempt is the number of the first process of every task in that generation: its logs
	// are in attempt_N.
	Attempt int `json:"attempt"`
	// Task is the task whose failure was the root cause; empty if an operator asked for the
	// restart. Rank, Host, ExitCode, Cause, LogDir and Time are then unset too.
	Task string `json:"task,omitempty"`
	Rank int    `json:"rank,omitempty"`
	Host string `json:"host,omitempty"`
	// ExitCode and Cause are as in [Exit].
	ExitCode int   `json:"exit_code,omitempty"`
	Cause    Cause `json:"cause,omitempty"`
	// Reason says in one line which task ended and how, with the error that the program
	// reported or printed.
	Reason string `json:"reason"`
	// LogDir is the directory of the files of the failed process on its host.
	LogDir string `json:"log_dir,omitempty"`
	// Time is when the process failed, by the wall clock of its host.
	Time time.Time `json:"time,omitzero"`
}

// String returns the reason and what followed it.
func (g GroupRestart) String() string {
	return fmt.Sprintf("%s; the group restarted (attempt_%d)", g.Reason, g.Attempt)
}
