package server

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// noChecks are the checks of a host that has none.
type noChecks struct{}

func (noChecks) First(context.Context, time.Duration) {}
func (noChecks) Names() []string                      { return nil }
func (noChecks) Failing() []fleet.Failing             { return nil }
func (noChecks) Changed() <-chan struct{}             { return nil }
func (noChecks) Results() []fleet.CheckResult         { return nil }

// If a run releases this host while the host joins, the release may reach the fleet before the
// list of what the host holds. The host joins once more, because otherwise the fleet would keep
// the stale list.
func TestAHostJoinsAgainWhenWhatIsHeldHasChanged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handle := &mocks.WorkflowUpdateHandle{}
	handle.On("Get", mock.Anything, mock.Anything).Return(nil)
	c := &mocks.Client{}
	c.On("NewWithStartWorkflowOperation", mock.Anything, mock.Anything, mock.Anything).Return(nil)
	held := []fleet.Holding{{Run: fleet.Run{WorkflowID: "iris", RunID: "1"}, Tasks: 2}}
	var said [][]fleet.Holding
	c.On("UpdateWithStartWorkflow", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		o := args.Get(1).(client.UpdateWithStartWorkflowOptions)
		said = append(said, o.UpdateOptions.Args[0].(fleet.Joined).Holds)
		held = nil // the run releases the host
	}).Return(handle, nil)
	s := &Server{}
	s.Connect(c)
	NewMembership(s, "clusterrun", fleet.Host{Name: "a", Instance: "i"}, noChecks{}).Keep(ctx,
		func() []fleet.Holding { return held },
		func(err error) {
			assert.NoError(t, err)
			cancel() // the host has joined
		})
	assert.Equal(t, [][]fleet.Holding{{{Run: fleet.Run{WorkflowID: "iris", RunID: "1"}, Tasks: 2}}, nil}, said)
}
