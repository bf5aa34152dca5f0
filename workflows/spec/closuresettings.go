package spec

import (
	"fmt"
	"strconv"
)

// Closures are the settings of a run's closure queue. They take effect when the queue opens, which
// is when a task first serves closures or a client first schedules one.
type Closures struct {
	QueueSize         *int `json:"queue_size,omitempty"`
	TransientFailures *int `json:"transient_failures,omitempty"`
}

// EnvTransientFailures is TensorFlow's variable for the number of transient parameter server
// failures that its coordinator ignores.
const EnvTransientFailures = "TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES"

// Limits and defaults of [Closures].
const (
	// DefaultQueueSize is the limit in TensorFlow's ClusterCoordinator.
	DefaultQueueSize = 256 * 1024
	// MaxQueueSize exceeds the number of closures that fit within the limit on their total size.
	MaxQueueSize = 1536 << 10
	// DefaultTransientFailures is the default in TensorFlow's ClusterCoordinator.
	DefaultTransientFailures = 3
)

// TransientFailuresOr returns the setting or, if it is not set, the value of the variable
// [EnvTransientFailures] in the spec or else in env. It returns nil if none of them is set, and an
// error if the variable's value is invalid.
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

// coordinatorEnv returns the value that the spec sets for a variable in the usual coordinator,
// which is the chief, or in all tasks if there is no chief.
func (s *RunSpec) coordinatorEnv(name string) string {
	if chief, ok := s.Task(TaskName(TypeChief, 0)); ok {
		return chief.Env.textOf(name)
	}
	return s.Env.textOf(name)
}

// parseTransientFailures parses the variable. As in TensorFlow, zero or less means that no
// failure is ignored.
func parseTransientFailures(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is not a whole number; write, for example, %d", EnvTransientFailures, Quote(text), DefaultTransientFailures)
	}
	return max(0, n), nil
}

// checkTransientFailures refuses a value that a coordinator could not parse.
func checkTransientFailures(c *checker, path, name, value string) {
	if name != EnvTransientFailures || value == "" {
		return
	}
	if _, err := parseTransientFailures(value); err != nil {
		c.add(path, Quote(value)+" is not a whole number", "write, for example, "+strconv.Quote(strconv.Itoa(DefaultTransientFailures))+", or omit it")
	}
}
