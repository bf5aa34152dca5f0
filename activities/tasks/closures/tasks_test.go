package closures

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// machine is a host with a task server and a broker, in real time.
type machine struct {
	t     testing.TB
	state string
	tasks []string

	server *taskapi.Server
	paths  map[string]string

	mu        sync.Mutex
	broker    *Broker
	restarted chan string
	// restartErr is the error of a restart.
	restartErr error
	serving    []closure.ServingTask
	served     bool          // a process has served
	reported   chan struct{} // closed by the next report
}

func (m *machine) forProcess(runkey.Task, int) (taskapi.Broker, error) { return m.now(), nil }

func (m *machine) now() *Broker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broker
}

// noStops is for tests without stop requests.
type noStops struct{ taskapi.Stops }

func newMachine(t testing.TB, tasks ...string) *machine {
	t.Helper()
	m := &machine{t: t, state: t.TempDir(), tasks: tasks, restarted: make(chan string, 100), reported: make(chan struct{})}
	m.start()
	t.Cleanup(func() {
		m.now().Close()
		_ = m.server.Close()
	})
	return m
}

// start starts the first or next server and broker.
func (m *machine) start() {
	m.t.Helper()
	m.startBroker()
	m.startServer()
}

func (m *machine) startServer() {
	m.t.Helper()
	m.server = must.Get(taskapi.NewServer(taskapi.Config{StateDir: m.state, Broker: m.forProcess, Stops: noStops{}, Log: zap.NewNop()}))(m.t)
	view := &taskapi.View{Here: map[string]bool{}}
	for i, name := range m.tasks {
		view.Members = append(view.Members, taskapi.Member{Task: name, Type: "worker", Index: i, Rank: i})
		view.Tasks, view.Here[name] = append(view.Tasks, name), true
	}
	m.paths = map[string]string{}
	for _, name := range m.tasks {
		m.paths[name] = must.Get(m.server.Listen(taskapi.Task{ID: runkey.Task{Task: name}, View: view}))(m.t)
	}
}

func (m *machine) startBroker() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broker = NewBroker(Config{
		Log: zap.NewNop(),
		Restart: func(task string) error {
			m.restarted <- task
			return m.restartErr
		},
		Report: func(_ context.Context, list []closure.ServingTask) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.serving = list
			m.served = m.served || len(list) > 0
			close(m.reported)
			m.reported = make(chan struct{})
			return nil
		},
	})
}

// kill closes the server and the broker, and starts the next ones.
func (m *machine) kill() {
	m.t.Helper()
	require.NoError(m.t, m.server.Close())
	m.now().Close()
	m.start()
}

// awaitServing waits until n processes serve.
func (m *machine) awaitServing(n int) {
	m.t.Helper()
	m.await(func() bool { return len(m.serving) == n }, fmt.Sprintf("%d processes serve", n))
}

// await waits for a condition that a report of the broker can fulfill.
func (m *machine) await(is func() bool, what string) {
	m.t.Helper()
	patience := time.After(time.Minute)
	for {
		m.mu.Lock()
		done, next := is(), m.reported
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-next:
		case <-patience:
			m.t.Fatalf("not within a minute: %s; there serve %v", what, m.servingTasks())
		}
	}
}

func (m *machine) servingTasks() []closure.ServingTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serving
}

// all lets processes call closures until all have ended, and returns the outcomes by ID. It waits
// for the first process.
func (m *machine) all(closures ...closure.Closure) map[uint64]closure.Outcome {
	m.t.Helper()
	m.await(func() bool { return m.served }, "a process serves")
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	out, calling := map[uint64]closure.Outcome{}, []uint64{}
	for len(out) < len(closures) {
		in := closure.Batch{Resources: testResources, Calling: calling}
		for _, c := range closures {
			if _, ended := out[c.ID]; !ended && !slices.Contains(calling, c.ID) {
				in.Closures = append(in.Closures, c)
			}
		}
		r, err := m.now().Run(ctx, in, len(calling) > 0)
		require.NoError(m.t, err)
		for _, o := range r.Outcomes {
			out[o.ID] = o
		}
		calling = r.Calling
		require.NoError(m.t, ctx.Err())
	}
	return out
}

// cancel cancels calls.
func (m *machine) cancel(grace time.Duration, ids ...uint64) {
	b := m.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if c := b.calls[id]; c != nil {
			b.cancel(c, grace)
		}
	}
	b.dispatch()
}

// one lets a process call c.
func (m *machine) one(c closure.Closure) closure.Outcome {
	m.t.Helper()
	return m.all(c)[c.ID]
}

// client returns a task's Go client.
func (m *machine) client(name string) *task.Task {
	m.t.Helper()
	before := os.Getenv(taskapi.SocketVar)
	require.NoError(m.t, os.Setenv(taskapi.SocketVar, m.paths[name]))
	c, err := task.Current()
	require.NoError(m.t, os.Setenv(taskapi.SocketVar, before))
	require.NoError(m.t, err)
	return c
}

func calling(id uint64, function string, args ...any) closure.Closure {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return closure.Closure{ID: id, Function: function, Args: b}
}

func using(c closure.Closure, resources ...uint64) closure.Closure {
	c.Resources = resources
	return c
}

func resource(id uint64) any { return map[string]uint64{closure.ResourceKey: id} }

var testResources = []closure.Resource{
	{ID: 1, Function: "load", Args: json.RawMessage(`[40]`)},
	{ID: 2, Function: "fails"},
	{ID: 3, Function: "flaky"},
	{ID: 4, Function: "nobody has this"},
}

func text(o closure.Outcome) string {
	if o.Error != nil {
		return fmt.Sprintf("%s %s: %s", o.Kind, o.Error.Kind, o.Error.Message)
	}
	return string(o.Value)
}

func assertText(t testing.TB, want string, o closure.Outcome) {
	t.Helper()
	assert.Equal(t, want, text(o))
}
