package closurequeue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// recorder is a server that answers each update with nothing.
type recorder struct {
	client.Client
	client.WorkflowUpdateHandle
	ids []string
}

func (r *recorder) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	r.ids = append(r.ids, o.UpdateID)
	return r, nil
}

func (*recorder) Get(context.Context, any) error { return nil }

// A schedule that is sent again is the same request. A take is not, because a schedule may have
// answered the earlier one with nothing.
func TestWhichRequestsAreTheSame(t *testing.T) {
	r := &recorder{}
	c := NewClient(r, spec.RunRef{WorkflowID: "run"})
	for range 2 {
		_, err := c.Schedule(t.Context(), closure.ScheduleRequest{Client: "c", Batch: 7})
		require.NoError(t, err)
		_, err = c.Take(t.Context(), closure.TakeRequest{Client: "c", After: 3})
		require.NoError(t, err)
	}
	require.Len(t, r.ids, 4)
	assert.Equal(t, r.ids[0], r.ids[2])
	assert.NotEqual(t, r.ids[1], r.ids[3])
}
