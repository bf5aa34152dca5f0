package spec

import (
	"fmt"
	"strconv"
)

// Closures are the settings of the queue of a run's closures. They apply from the time at which
// the queue is opened, which is when a task first serves closures or a client first schedules
// some.
type Closures struct {
	QueueSize         *int `json:"queue_size,omitempty"`
	TransientFailures *int `json:"transient_failures,omitempty"`
}

// EnvTransientFailures is TensorFlow's variable for the number of transient failures of
// parameter servers that its coordinator ignores.
const EnvTransientFailures = "TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES"

// Limits and defaults of [Closures].
const (
	// DefaultQueueSize is the original's.
	DefaultQueueSize = 256 * 1024
	// MaxQueueSize is more closures than the limit of their bytes allows.
	MaxQueueSize = 1536 << 10
	// DefaultTransientFailures is the original's.
	DefaultTransientFailures = 3
)

// TransientFailuresOr returns the setting, or else the value of the variable
// [EnvTransientFailures] in the spec, or else its value in env. It returns nil if none of them
// is set. The error describes an invalid value of the variable.
func (s *RunSpec) TransientFailuresOr(env func(name string) string) (*int, error) {
	if s.Closures.TransientFailures != nil {
		return new(*s.Closures.TransientFailures), nil
	}
	text := s.coordinatorEnv(EnvTransientFailures)
	if text == "" {
		text = env(EnvTransientFailures)
	}
	if text == "" {
		return nil, nil
	}
	n, err := parseTransientFailures(text)
	if err != nil {
		return nil, err
	}
	return &n, nil
}

// coordinatorEnv returns the value of a variable in the spec for the task that usually
// coordinates, which is the chief; without one, for all tasks.
func (s *RunSpec) coordinatorEnv(name string) string {
	if chief, ok := s.Task(TaskName(TypeChief, 0)); ok {
		return chief.Env.textOf(name)
	}
	return s.Env.textOf(name)
}

// parseTransientFailures reads the variable. As in TensorFlow, a value that is not positive
// means that no failure is ignored.
func parseTransientFailures(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is not a whole number; write for example %d", EnvTransientFailures, Quote(text), DefaultTransientFailures)
	}
	return max(0, n), nil
}

// checkTransientFailures refuses a variable that a coordinator could not read.
func checkTransientFailures(c *checker, path, name, value string) {
	if name != EnvTransientFailures || value == "" {
		return
	}
	if _, err := parseTransientFailures(value); err != nil {
		c.add(path, Quote(value)+" is not a whole number", "write for example "+strconv.Quote(strconv.Itoa(DefaultTransientFailures))+", or leave it out")
	}
}
