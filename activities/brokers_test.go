package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// queues are a server's queues that accept every message.
type queues struct{ client.Client }

func (queues) SignalWithStartWorkflow(context.Context, string, string, any, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return nil, nil
}

// queuesAt returns a server's queues.
func queuesAt(s client.Client) func(spec.RunRef) (*closurequeue.Client, error) {
	return func(run spec.RunRef) (*closurequeue.Client, error) { return closurequeue.NewClient(s, run), nil }
}

// beaten is a server that accepts heartbeats.
type beaten struct{ Server }

func (beaten) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// emptied is a supervisor without processes.
type emptied struct {
	supervisor.API
	during func() // is called by Release, if it is not nil
}

func (e emptied) Release(context.Context, supervisor.ReleaseRequest) (supervisor.ProcessesReply, error) {
	if e.during != nil {
		e.during()
	}
	return supervisor.ProcessesReply{}, nil
}

// serving is a host that is reserved for a run.
type serving struct {
	*Host
	t   *testing.T
	run runkey.Run
}

func newServing(t *testing.T) *serving {
	t.Helper()
	return servingOf(t, queues{})
}

// servingOf returns a host that uses a server's queues.
func servingOf(t *testing.T, q client.Client) *serving {
	t.Helper()
	s := &serving{t: t}
	s.Host = must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: emptied{}, Queues: queuesAt(q), Server: beaten{}, Log: zap.NewNop()}))(t)
	t.Cleanup(s.Close)
	s.do(func(ctx context.Context) error {
		s.run = runOf(ctx, "")
		_, err := s.plans.update(s.run, func(*plan) (*plan, error) {
			return &plan{Run: s.run, Spec: (&spec.RunSpec{}).WithDefaults()}, nil
		})
		return err
	})
	return s
}

// do calls a function as an activity of the run.
func (s *serving) do(activity func(context.Context) error) {
	s.t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(activity)
	_, err := env.ExecuteActivity(activity)
	require.NoError(s.t, err)
}

func (s *serving) of() spec.RunRef {
	return spec.RunRef{WorkflowID: s.run.WorkflowID, RunID: s.run.RunID}
}

// batch delivers closures.
func (s *serving) batch(closures ...closure.Closure) (out closure.BatchResult, err error) {
	s.do(func(ctx context.Context) error {
		out, err = server.NewClosures(&server.Server{}, s.Brokers()).RunClosures(ctx, closure.Batch{Run: s.of(), Closures: closures})
		return nil
	})
	return out, err
}

// asksForItsQueue makes the release ask the server whether the run has a queue, as it does when
// only a coordinator on another host has opened one.
func (s *serving) asksForItsQueue() {
	s.t.Helper()
	_, err := s.plans.update(s.run, func(p *plan) (*plan, error) {
		p.Served = false
		return p, nil
	})
	require.NoError(s.t, err)
}

func notServed(err error) bool {
	var app *sdk.ApplicationError
	return errors.As(err, &app) && app.Type() == "NotServed"
}

// A run's batches end when the run is released, and the server retries them immediately. That must
// not create a broker that is never closed.
func TestReleaseEndsTheBrokerForGood(t *testing.T) {
	s := newServing(t)
	require.NotNil(t, s.Brokers().Serving(s.run))
	s.asksForItsQueue()
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		for t.Context().Err() == nil {
			if _, err := s.batch(closure.Closure{ID: 1, Function: "f"}); notServed(err) {
				return
			}
		}
	}()
	require.Eventually(t, func() (noted bool) {
		_, err := s.plans.update(s.run, func(p *plan) (*plan, error) {
			noted = p.Served
			return p, nil
		})
		return err == nil && noted
	}, time.Minute, time.Millisecond, "the batch has the broker")
	s.asksForItsQueue()
	// During the release, the broker may still be requested.
	asked := false
	s.Supervisor = emptied{during: func() { asked = s.Brokers().Serving(s.run) != nil }}
	s.do(func(ctx context.Context) error {
		_, err := s.Release(ctx, hostapi.ReleaseInput{})
		return err
	})
	require.True(t, asked)
	assert.Nil(t, s.Brokers().Serving(s.run), "a request that began before")
	<-refused
	_, err := s.batch(closure.Closure{ID: 1, Function: "f"})
	assert.True(t, notServed(err))
}
