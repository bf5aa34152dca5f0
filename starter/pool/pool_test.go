package pool

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func init() {
	Register("prepare", func(context.Context) error { return nil })
	Register("takes_one", func(_ context.Context, i int) error { return nil })
}

// fake is the directory for the requests that testdata/clusterrun records.
type fake string

func (f fake) read(t *testing.T, name string) string {
	t.Helper()
	return must.Read(t, string(f), name)
}

// newPool returns a pool of two processes, simulated by testdata/clusterrun.
func newPool(t *testing.T, o Options) (*Pool, fake) {
	t.Helper()
	mainIsCalled.Store(true)
	f := fake(t.TempDir())
	t.Setenv("FAKE", string(f))
	two := 2
	o.Tasks = append(o.Tasks, spec.TaskGroup{Type: "worker", Count: &two})
	if o.Clusterrun == "" {
		o.Clusterrun = "testdata/clusterrun"
	}
	p := must.Get(New(o))(t)
	t.Cleanup(p.Shutdown)
	return p, f
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// pid returns the process that simulates clusterrun for a pool.
func pid(t *testing.T, p *Pool, function string) int {
	t.Helper()
	values := must.Get(Run[int](bounded(t), p, function))(t)
	require.Len(t, values, 2)
	assert.Equal(t, 2, values[1], "in the order of the ranks")
	return values[0]
}

func TestOptionsThatAreWrong(t *testing.T) {
	one, none := 1, 0
	worker := []spec.TaskGroup{{Type: "worker", Count: &one}}
	for want, o := range map[string]Options{
		"tasks":                     {},
		"must be at least 1, not 0": {Tasks: []spec.TaskGroup{{Type: "worker", Count: &none}}},
		"is not a task type":        {Tasks: []spec.TaskGroup{{Type: "a worker", Count: &one}}},
		`the initializer "nobody" is not a registered func(context.Context) error`:    {Tasks: worker, Initializer: "nobody"},
		`the initializer "takes_one" is not a registered func(context.Context) error`: {Tasks: worker, Initializer: "takes_one"},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, want)
	}
	assert.Panics(t, func() { Register("no function", 3) })
	assert.Panics(t, func() { Register("prepare", func(context.Context) error { return nil }) }, "twice")
}

// MPR-34: a program that does not call Main would start itself forever.
func TestMainIsNotCalled(t *testing.T) {
	p, _ := newPool(t, Options{})
	mainIsCalled.Store(false)
	_, err := p.Run(bounded(t), "pids")
	require.ErrorIs(t, err, ErrNoMain)
}

func TestTheProgramClusterrun(t *testing.T) {
	here := must.Get(filepath.Abs("testdata/clusterrun"))(t)
	t.Setenv("PATH", filepath.Dir(here)+":"+os.Getenv("PATH"))
	t.Setenv("CLUSTERRUN_BIN", "")
	found := func(option string) string {
		t.Helper()
		path := must.Get(find(option))(t)
		return path
	}
	assert.Equal(t, here, found("testdata/clusterrun"), "for tasks, which are elsewhere")
	assert.Equal(t, here, found(""), "in PATH")
	t.Setenv("CLUSTERRUN_BIN", "/bin/sh")
	assert.Equal(t, "/bin/sh", found(""))
	assert.Equal(t, here, found(here), "an option goes before the variable")
	_, err := find("testdata/nothing")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "put it into PATH, or name it in Options.Clusterrun or CLUSTERRUN_BIN")

	broken := filepath.Join(t.TempDir(), "clusterrun")
	require.NoError(t, os.WriteFile(broken, []byte("#!/no/such/shell\n"), 0o700))
	p, _ := newPool(t, Options{Clusterrun: broken})
	_, err = p.Run(bounded(t), "pids")
	require.ErrorContains(t, err, "start "+broken)
}

// The first run starts the processes, later runs reuse them, and Shutdown stops them.
// Afterwards, new ones can be started.
func TestTheLifeOfAPool(t *testing.T) {
	p, f := newPool(t, Options{})
	assert.NoFileExists(t, filepath.Join(string(f), "spec"), "nobody has called anything")
	p.Shutdown()
	first := pid(t, p, "pids")
	assert.Equal(t, first, pid(t, p, "pids"))
	assert.NoFileExists(t, filepath.Join(string(f), "ended"))
	p.Shutdown()
	assert.Equal(t, strconv.Itoa(first)+"\n", f.read(t, "ended"), "shutdown has waited for it")
	p.Shutdown()
	assert.NotEqual(t, first, pid(t, p, "pids"))
	p.Shutdown()
	sessions.Range(func(any, any) bool { t.Error("a session is left"); return false })
}

// The pool starts clusterrun with this program marked as a pool's process.
func TestTheRunOfAPool(t *testing.T) {
	t.Setenv("CLUSTERRUN_STATE_DIR", "/state")
	one := 1
	p, f := newPool(t, Options{
		Tasks: []spec.TaskGroup{{Type: "chief", Count: &one, Command: []string{"python", "other.py"}}},
		Env:   map[string]string{"A": "b"}, Initializer: "prepare",
	})
	_, err := p.Run(bounded(t), "pids")
	require.NoError(t, err)
	assert.Equal(t, "run --coordinator-fd 3 -\n", f.read(t, "arguments"))
	s := must.Get(spec.Decode([]byte(f.read(t, "spec"))))(t)
	self := must.Get(os.Executable())(t)
	require.Greater(t, len(s.Command), 2)
	assert.Equal(t, []string{self, marker}, s.Command[:2])
	assert.Equal(t, append([]string{"python", "other.py"}, s.Command[1:]...), s.Tasks[0].Command)
	assert.Empty(t, s.Tasks[1].Command)
	assert.Equal(t, os.Args[1:], s.Command[3:])
	k := must.JSON[knowledge](t, s.Command[2])
	assert.Equal(t, "prepare", k.Initializer)
	assert.Equal(t, "/state", k.Environ["CLUSTERRUN_STATE_DIR"])
	assert.Equal(t, p.binary, k.Environ["CLUSTERRUN_BIN"], "for pools of their own")
	assert.Equal(t, spec.EnvOf(map[string]string{"A": "b"}), s.Env)
	assert.Equal(t, spec.OnFailureStop, s.OnFailure)
}

// A call is one closure per task, which is never called twice.
func TestARequest(t *testing.T) {
	p, f := newPool(t, Options{})
	_, err := p.Run(bounded(t), "pids", 3, "x", nil)
	require.NoError(t, err)
	requests := strings.Split(f.read(t, "requests"), "\n")
	message := must.JSON[closure.SyncRequest](t, requests[0])
	require.NoError(t, message.Validate())
	require.Len(t, message.Closures, 2)
	for i, c := range message.Closures {
		assert.Equal(t, "pids", c.Function)
		assert.JSONEq(t, `[3, "x", null]`, string(c.Args))
		assert.Equal(t, "worker-"+strconv.Itoa(i), c.Task)
	}
	_, err = p.Run(bounded(t), "pids", 1, make(chan int))
	require.ErrorContains(t, err, "argument 2 of pids: json: unsupported type: chan int")
}

// A function's error does not shut down the pool.
func TestFunctionsThatFail(t *testing.T) {
	p, _ := newPool(t, Options{})
	before := pid(t, p, "pids")
	var failed *closure.Error
	_, err := p.Run(bounded(t), "fails")
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, closure.Error{Kind: "KeyError", Message: "no x", Task: "worker-1"}, *failed)
	_, err = p.Run(bounded(t), "both")
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "the first", failed.Message, "in the order of the ranks")
	_, err = p.Run(bounded(t), "refused")
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, closure.Error{Kind: "RefusedError", Message: "no task has registered it"}, *failed)
	_, err = Run[string](bounded(t), p, "pids")
	require.ErrorContains(t, err, "the value of pids in worker-0 is not of type string")
	assert.Equal(t, before, pid(t, p, "pids"), "it goes on")
}

// A process that dies shuts down the pool with an error that states the reason. The next call
// gets a new pool.
func TestProcessesThatDie(t *testing.T) {
	p, f := newPool(t, Options{})
	for function, why := range map[string]string{
		"lost": "the run has failed: worker-1 died of SIGKILL",
		"over": "worker-0 has ended",
		"dies": "clusterrun exited with exit status 7; see stderr for the reason",
	} {
		before := pid(t, p, "pids")
		_, err := p.Run(bounded(t), function)
		require.ErrorIs(t, err, ErrProcessDied)
		require.EqualError(t, err, ErrProcessDied.Error()+": "+why)
		if function == "dies" {
			var status *exec.ExitError
			require.ErrorAs(t, err, &status)
		} else {
			assert.Contains(t, strings.Fields(f.read(t, "ended")), strconv.Itoa(before), "it was waited for")
		}
		assert.NotEqual(t, before, pid(t, p, "pids"))
	}
}

// An abandoned call passes nothing on to the next.
func TestARunThatIsGivenUp(t *testing.T) {
	p, f := newPool(t, Options{})
	before := pid(t, p, "pids")
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := p.Run(ctx, "late")
		given <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(f.read(t, "requests"), `"late"`) }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	next := make(chan int, 1)
	go func() { next <- pid(t, p, "pids") }()
	require.NoError(t, os.WriteFile(filepath.Join(string(f), "go"), nil, 0o600))
	assert.Equal(t, before, <-next, "the answer to the other request came first")
}

// Shutdown only logs errors.
func TestAShutdownThatFails(t *testing.T) {
	var log bytes.Buffer
	p, f := newPool(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	pid(t, p, "pids")
	require.NoError(t, os.WriteFile(filepath.Join(string(f), "badly"), nil, 0o600))
	p.Shutdown()
	assert.Contains(t, log.String(), "ignoring an error when shutting down the pool")
	assert.Contains(t, log.String(), "exit status 5")
}
