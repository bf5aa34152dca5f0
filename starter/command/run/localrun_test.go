package run

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// starting returns a run before its start. Its server calls took with the context of the
// request and returns the error of took.
func starting(t *testing.T, took func(context.Context, chan<- os.Signal) error) (*localRun, func() error) {
	signals := make(chan os.Signal)
	execution := &mocks.WorkflowRun{}
	execution.On("GetID").Return("x")
	execution.On("GetRunID").Return("execution")
	server := &mocks.Client{}
	call := server.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything)
	call.Run(func(args mock.Arguments) {
		err := took(args.Get(0).(context.Context), signals)
		call.Return(execution, err)
	})
	l := &localRun{App: &cli.App{}, client: server, signals: signals, id: "x", spec: &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Addresses: []string{"localhost"}, Command: []string{"true"}}}}}
	l.Printer.Hurried = make(chan struct{})
	return l, func() error { return l.startRun(t.Context(), starter.Options{ID: "x", Queue: "q"}) }
}

// A signal must not cancel the request to start a run: the run would be unknown here, and no
// command would end it.
func TestASignalDoesNotCancelTheStartOfARun(t *testing.T) {
	l, start := starting(t, func(ctx context.Context, signals chan<- os.Signal) error {
		signals <- syscall.SIGTERM
		return ctx.Err()
	})
	require.NoError(t, start())
	require.NotNil(t, l.run)
	assert.Equal(t, "execution", l.run.ExecutionID)
	assert.Equal(t, syscall.SIGTERM, l.early, "it is for whoever supervises the run")
	assert.True(t, l.asked)
}

// The second signal ends the wait for the server, although the server may start the run.
func TestTheSecondSignalEndsTheWaitForAStart(t *testing.T) {
	l, start := starting(t, func(ctx context.Context, signals chan<- os.Signal) error {
		signals <- syscall.SIGTERM
		signals <- syscall.SIGINT
		<-ctx.Done()
		return ctx.Err()
	})
	assert.EqualError(t, start(), "got SIGTERM before the run was started")
	assert.Nil(t, l.run)
	assert.True(t, l.asked, "what is known of the run has to stay")
}

// A start that the server refuses leaves no run behind.
func TestARefusedStartLeavesNoRun(t *testing.T) {
	l, start := starting(t, func(context.Context, chan<- os.Signal) error { return serviceerror.NewInvalidArgument("no") })
	assert.ErrorContains(t, start(), "no")
	assert.False(t, l.asked)
}

// A signal just after the start of a run either ends the start or is left to supervise.
func TestNoSignalIsLostWhileARunIsStarted(t *testing.T) {
	for range 2000 {
		signals := make(chan os.Signal, 1)
		a := &cli.App{}
		a.Printer.Hurried = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		stop := cancelBySignal(a, signals, cancel)
		go func() { signals <- syscall.SIGINT }()
		if s := stop(); s == nil {
			assert.Equal(t, syscall.SIGINT, <-signals)
			assert.NoError(t, ctx.Err())
		} else {
			assert.Error(t, ctx.Err())
		}
		cancel()
	}
}
