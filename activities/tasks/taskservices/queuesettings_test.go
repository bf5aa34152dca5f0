package taskservices

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// toldQueues records the settings with which queues would be opened.
type toldQueues struct {
	Queues
	told chan closure.QueueInput
}

func (q *toldQueues) Tell(_ context.Context, in closure.QueueInput, _ closure.ServingMessage) error {
	q.told <- in
	return nil
}

func (q *toldQueues) Client(run spec.RunRef) (*closurequeue.Client, error) {
	return closurequeue.NewClient(toldServer{told: q.told}, run), nil
}

// toldServer records the queues that it is asked to start.
type toldServer struct {
	closurequeue.Server
	told chan closure.QueueInput
}

func (s toldServer) ExecuteWorkflow(ctx context.Context, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.told <- args[0].(closure.QueueInput)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A host opens the queue of a run with the settings in the run's spec, whether a task first
// serves or coordinates (SEED-34, SEED-53).
func TestHostOpensTheQueueWithTheSettingsOfTheRun(t *testing.T) {
	run := spec.RunRef{WorkflowID: servedRun.WorkflowID, RunID: servedRun.RunID}
	for name, test := range map[string]struct {
		settings  spec.Closures
		env, host string
		want      closure.QueueInput
		warns     int
	}{
		"none":                 {spec.Closures{}, "", "", closure.QueueInput{Run: run}, 0},
		"settings":             {spec.Closures{QueueSize: new(2), TransientFailures: new(5)}, "6", "7", closure.QueueInput{Run: run, QueueSize: 2, TransientUnavailable: new(5)}, 0},
		"no limit":             {spec.Closures{QueueSize: new(0)}, "", "", closure.QueueInput{Run: run, QueueSize: -1}, 0},
		"the tasks' variable":  {spec.Closures{}, "6", "7", closure.QueueInput{Run: run, TransientUnavailable: new(6)}, 0},
		"the host's variable":  {spec.Closures{}, "", "7", closure.QueueInput{Run: run, TransientUnavailable: new(7)}, 0},
		"a variable with text": {spec.Closures{}, "", "seven", closure.QueueInput{Run: run}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(spec.EnvTransientFailures, test.host)
			log, logged := observer.New(zap.WarnLevel)
			queues := &toldQueues{told: make(chan closure.QueueInput, 1)}
			s := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Command: []string{"x"}}}, Closures: test.settings}
			if test.env != "" {
				s.Env = spec.EnvOf(map[string]string{spec.EnvTransientFailures: test.env})
			}
			h := newServices(t, Config{Plans: plansOf(s), Queues: queues, Log: zap.New(log)})

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				_, _ = h.brokers.Next(ctx, by("worker-0"), taskapi.ClosuresRequest{Process: "p", Seq: 1, Slots: 1, Free: 1, Functions: []string{"f"}})
			}()
			assert.Equal(t, test.want, <-queues.told, "a task serves")
			go func() { _, _ = h.coordinators.Answer(ctx, by("worker-0"), 0, wire.OpOpen, nil) }()
			assert.Equal(t, test.want, <-queues.told, "a task coordinates")
			assert.GreaterOrEqual(t, logged.FilterFieldKey("error").Len(), test.warns)
			if test.warns == 0 {
				assert.Zero(t, logged.Len())
			}
		})
	}
}

// deafQueues refuse messages at first, as if they were too large.
type deafQueues struct {
	Queues
	mu    sync.Mutex
	tries int
	heard chan struct{}
}

func (q *deafQueues) Tell(context.Context, closure.QueueInput, closure.ServingMessage) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tries++; q.tries <= 7 {
		return errors.New("the message is too large")
	}
	select {
	case q.heard <- struct{}{}:
	default:
	}
	return nil
}

// A queue that gets no report of serving processes calls nothing, so the host logs that, once.
func TestAHostWarnsThatItsQueueHearsNothing(t *testing.T) {
	log, logged := observer.New(zap.WarnLevel)
	queues := &deafQueues{heard: make(chan struct{}, 1)}
	h := newServices(t, Config{Queues: queues, Log: zap.New(log)})
	h.brokers.Serving(servedRun).changes([]closure.ServingTask{{Task: "worker-0"}})
	<-queues.heard
	warnings := logged.FilterMessage("the call queue could not be notified which tasks serve; retrying").All()
	require.Len(t, warnings, 1)
	assert.Equal(t, "the message is too large", warnings[0].ContextMap()["error"])
}
