package pool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Options configure a [Pool].
type Options struct {
	// Tasks are the processes, in rank order. A task with its own command runs that instead of
	// this program; the command must also call [Main].
	Tasks []spec.TaskGroup
	// Initializer names a registered func(context.Context) error, which each process calls once,
	// before anything else.
	Initializer string
	// Clusterrun is the path of the clusterrun program. Default: the variable CLUSTERRUN_BIN, or
	// else the first in PATH.
	Clusterrun string
	// Env is added to the processes' environment.
	Env map[string]string
	// Log receives errors during shutdown. Default: [slog.Default].
	Log *slog.Logger
}

// Pool is a set of processes that serve many calls. The processes are started by the
// first call, and by the first call after [Pool.Shutdown]. Its methods may be called concurrently.
type Pool struct {
	options Options
	tasks   []spec.Task
	binary  string

	mu      sync.Mutex
	session *session // nil if no processes are running
}

// ErrProcessDied is returned if a process has exited during a call, or since the last one. The
// pool is then shut down, and the next call starts new processes. The message is TensorFlow's,
// followed by the reason if it is known.
var ErrProcessDied = errors.New("Unexpected EOF. Worker process may have died") //nolint:staticcheck // the seed's text

// ErrNoMain reports that the program did not call [Main].
var ErrNoMain = errors.New("package pool is not initialized: the main function must call pool.Main() first, because a pool's processes run this program again")

// New creates a pool. It does not start the processes.
func New(o Options) (*Pool, error) {
	p := &Pool{options: o}
	s, err := p.spec("clusterrun")
	if err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p.tasks = s.WithDefaults().TaskList()
	if o.Initializer != "" && initializerOf(o.Initializer) == nil {
		return nil, fmt.Errorf("the initializer %q is not a registered func(context.Context) error", o.Initializer)
	}
	if o.Log == nil {
		p.options.Log = slog.Default()
	}
	return p, nil
}

// Run calls a function in all processes and returns the values in rank order. See [Pool.Run].
func Run[T any](ctx context.Context, p *Pool, function string, args ...any) ([]T, error) {
	raw, err := p.Run(ctx, function, args...)
	if err != nil {
		return nil, err
	}
	values := make([]T, len(raw))
	for i, b := range raw {
		if err := json.Unmarshal(b, &values[i]); err != nil {
			return nil, fmt.Errorf("the value of %s in %s is not of type %T: %w", function, p.tasks[i].Name(), values[i], err)
		}
	}
	return values, nil
}

// Run calls a function, which the processes must have registered, in all processes. It waits for
// all of them and returns the values as JSON, in rank order. If some calls fail, it returns the
// first error in that order, a [*closure.Error]; the pool remains usable, even if the function is
// not registered. If a process has died, the error is [ErrProcessDied], and the pool is shut
// down. When ctx is done, Run returns, but the processes finish the call.
func (p *Pool) Run(ctx context.Context, function string, args ...any) ([]json.RawMessage, error) {
	closures, err := p.closures(function, args)
	if err != nil {
		return nil, err
	}
	s, err := p.started()
	if err != nil {
		return nil, err
	}
	outcomes, err := s.call(ctx, closures)
	var over *overError
	switch {
	case errors.As(err, &over):
		return nil, p.died(s, over.why)
	case err != nil:
		return nil, err
	}
	values := make([]json.RawMessage, len(outcomes))
	var first error
	for i, o := range outcomes {
		failure := o.Failure()
		if isLost(failure) {
			return nil, p.died(s, s.awaitOver(failure.Message))
		}
		if failure != nil && first == nil {
			first = failure
		}
		if values[i] = o.Value; len(o.Value) == 0 {
			values[i] = json.RawMessage("null")
		}
	}
	if first != nil {
		return nil, first
	}
	return values, nil
}

// Shutdown stops the processes, if any, and waits until they have exited. It only logs errors.
func (p *Pool) Shutdown() {
	p.mu.Lock()
	s := p.session
	p.session = nil
	p.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.end(); err != nil {
		p.options.Log.Error("ignoring an error when shutting down the pool", "error", err)
	}
}

// died shuts down a pool after a process died, and returns the error for the caller.
func (p *Pool) died(s *session, why string) error {
	p.mu.Lock()
	if p.session == s {
		p.session = nil
	}
	p.mu.Unlock()
	err := s.end()
	switch {
	case why != "":
		return fmt.Errorf("%w: %s", ErrProcessDied, why)
	case err != nil:
		return fmt.Errorf("%w: %w; see stderr for the reason", ErrProcessDied, err)
	}
	return fmt.Errorf("%w. Please report a bug", ErrProcessDied)
}

// started returns the session, starting the processes if there is none.
func (p *Pool) started() (*session, error) {
	if !mainIsCalled.Load() {
		return nil, ErrNoMain
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		return p.session, nil
	}
	if p.binary == "" {
		var err error
		if p.binary, err = find(p.options.Clusterrun); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program clusterrun: %w", err)
	}
	s, err := p.spec(self)
	if err != nil {
		return nil, err
	}
	p.session, err = start(p.binary, s)
	return p.session, err
}

func find(path string) (string, error) {
	path = cmp.Or(path, os.Getenv("CLUSTERRUN_BIN"), "clusterrun")
	found, err := exec.LookPath(path)
	if err == nil {
		found, err = filepath.Abs(found) // the tasks' working directories differ
	}
	if err != nil {
		return "", fmt.Errorf("the program clusterrun was not found (%w); put it into PATH, or name it in Options.Clusterrun or CLUSTERRUN_BIN", err)
	}
	return found, nil
}

// spec returns the spec for the pool's run. A failing task stops all tasks.
func (p *Pool) spec(self string) (*spec.RunSpec, error) {
	grace, callGrace := spec.Duration(endGrace), spec.Duration(callGrace)
	s := &spec.RunSpec{
		Name: "pool", Tasks: slices.Clone(p.options.Tasks), Env: spec.EnvOf(p.options.Env),
		OnFailure: spec.OnFailureStop, Stop: spec.Stop{Grace: &grace}, ChiefGrace: &grace,
		StopTogether: spec.StopTogether{Grace: &callGrace, IgnoreLiveTasks: true},
	}
	k := knowledge{Initializer: p.options.Initializer, Environ: map[string]string{"CLUSTERRUN_BIN": p.binary}}
	for _, name := range environ {
		if value, ok := os.LookupEnv(name); ok {
			k.Environ[name] = value
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	process := append([]string{marker, string(text)}, os.Args[1:]...)
	s.Command = append([]string{self}, process...)
	for i, g := range s.Tasks {
		if len(g.Command) > 0 {
			s.Tasks[i].Command = slices.Concat(g.Command, process)
		}
	}
	return s, nil
}

// isLost reports whether an error leaves it unknown what a call has done, because its process
// exited or the run ended.
func isLost(e *closure.Error) bool {
	if e == nil || e.Traceback != "" {
		return false
	}
	switch e.Kind {
	case closure.ErrQuarantined, closure.ErrLost:
		return true
	case closure.ErrCancelled:
		return e.Task == ""
	}
	return false
}

// closures returns the closures that call a function once per task. A call is never repeated.
func (p *Pool) closures(function string, args []any) ([]closure.Closure, error) {
	raw := make([]json.RawMessage, len(args))
	for i, a := range args {
		b, err := json.Marshal(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d of %s: %w", i+1, function, err)
		}
		raw[i] = b
	}
	list, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	all := make([]closure.Closure, len(p.tasks))
	for i, t := range p.tasks {
		all[i] = closure.Closure{Function: function, Args: list, Task: t.Name()}
	}
	return all, nil
}
