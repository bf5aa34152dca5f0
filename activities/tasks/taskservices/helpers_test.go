package taskservices

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// remembered holds plans in memory.
type remembered struct {
	mu   sync.Mutex
	runs map[runkey.Run]Run
}

func (p *remembered) Run(k runkey.Run) (Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[k]
	if !ok {
		return Run{}, errors.New("no such run")
	}
	return r, nil
}

func (p *remembered) Note(k runkey.Run, change func(*Notes)) (Run, error) {
	r, err := p.Run(k)
	if err != nil {
		return Run{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r = p.runs[k]
	change(&r.Notes)
	p.runs[k] = r
	return r, nil
}

// change changes a run the way its host does.
func (p *remembered) change(k runkey.Run, change func(*Run)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[k]
	change(&r)
	p.runs[k] = r
}

var servedRun = runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}

// plansOf returns generation 1 of the run, with two workers.
func plansOf(s *spec.RunSpec) *remembered {
	if s.Tasks == nil {
		s.Tasks = []spec.TaskGroup{{Type: "worker", Count: new(2), Command: []string{"x"}}}
	}
	return &remembered{runs: map[runkey.Run]Run{
		servedRun: {Key: servedRun, Generation: 1, Spec: s.WithDefaults()},
	}}
}

func by(task string) runkey.Task {
	return runkey.Task{Run: servedRun, Generation: 1, Task: task}
}

// newServices returns a host's services with these plans, until the test ends.
func newServices(t *testing.T, c Config) *Services {
	t.Helper()
	if c.Plans == nil {
		c.Plans = plansOf(&spec.RunSpec{})
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Host, c.StateDir = "host-a", t.TempDir()
	s := must.Get(New(c))(t)
	t.Cleanup(s.Close)
	return s
}

func asks(process string, slots int) wire.ClosuresRequest {
	return wire.ClosuresRequest{Process: process, Seq: 1, Slots: slots, Free: slots}
}

// next asks for closures like a task's process.
func (s *Services) next(ctx context.Context, task string, in wire.ClosuresRequest) error {
	b, err := s.brokers.ForProcess(by(task), in.Slots)
	if err == nil {
		_, err = b.Next(ctx, task, in)
	}
	return err
}

// queuesAt returns a server's queues.
func queuesAt(s client.Client) func(spec.RunRef) (*closurequeue.Client, error) {
	return func(run spec.RunRef) (*closurequeue.Client, error) { return closurequeue.NewClient(s, run), nil }
}

// toldServer records the settings with which queues would be opened.
type toldServer struct {
	client.Client
	told chan closure.QueueInput
}

func (s *toldServer) SignalWithStartWorkflow(_ context.Context, _, _ string, _ any, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.told <- args[0].(closure.QueueInput)
	return nil, nil
}

func (s *toldServer) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, serviceerror.NewNotFound("no queue")
}

func (s *toldServer) ExecuteWorkflow(ctx context.Context, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.told <- args[0].(closure.QueueInput)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A host opens a run's queue with the settings in the spec, whether a task first serves or
// coordinates.
func TestHostOpensTheQueueWithTheSettingsOfTheRun(t *testing.T) {
	run := spec.RunRef{WorkflowID: servedRun.WorkflowID, RunID: servedRun.RunID}
	for name, test := range map[string]struct {
		settings  spec.Closures
		env, host string
		want      closure.QueueInput
		warns     int
	}{
		"settings":             {spec.Closures{QueueSize: new(2), TransientFailures: new(5)}, "6", "7", closure.QueueInput{Run: run, QueueSize: 2, TransientUnavailable: new(5)}, 0},
		"a variable with text": {spec.Closures{}, "", "seven", closure.QueueInput{Run: run}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(spec.EnvTransientFailures, test.host)
			log, logged := observer.New(zap.WarnLevel)
			server := &toldServer{told: make(chan closure.QueueInput, 1)}
			s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Command: []string{"x"}}}, Closures: test.settings}
			if test.env != "" {
				s.Env = spec.EnvOf(map[string]string{spec.EnvTransientFailures: test.env})
			}
			h := newServices(t, Config{Plans: plansOf(s), Queues: queuesAt(server), Log: zap.New(log)})

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				_ = h.next(ctx, "worker-0", wire.ClosuresRequest{Process: "p", Seq: 1, Slots: 1, Free: 1})
			}()
			assert.Equal(t, test.want, <-server.told, "a task serves")
			queue := must.Get(h.queue(ctx, by("worker-0")))(t)
			go func() { _, _ = queue.Sync(ctx, closure.SyncRequest{Client: "c"}) }()
			assert.Equal(t, test.want, <-server.told, "a task coordinates")
			assert.GreaterOrEqual(t, logged.FilterFieldKey("error").Len(), test.warns)
			if test.warns == 0 {
				assert.Zero(t, logged.Len())
			}
		})
	}
}

// deafServer at first rejects messages as too large.
type deafServer struct {
	client.Client
	mu    sync.Mutex
	tries int
	heard chan struct{}
}

func (q *deafServer) SignalWithStartWorkflow(context.Context, string, string, any, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tries++; q.tries <= 7 {
		return nil, errors.New("the message is too large")
	}
	select {
	case q.heard <- struct{}{}:
	default:
	}
	return nil, nil
}

// A queue that gets no report of serving processes calls nothing, so the host warns once.
func TestAHostWarnsThatItsQueueHearsNothing(t *testing.T) {
	log, logged := observer.New(zap.WarnLevel)
	server := &deafServer{heard: make(chan struct{}, 1)}
	h := newServices(t, Config{Queues: queuesAt(server), Log: zap.New(log)})
	require.NoError(t, h.next(t.Context(), "worker-0", asks("a", 1)))
	<-server.heard
	warnings := logged.FilterMessage("could not notify the call queue which tasks serve; retrying").All()
	require.Len(t, warnings, 1)
	assert.Equal(t, "the message is too large", warnings[0].ContextMap()["error"])
}
