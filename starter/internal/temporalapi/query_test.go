package temporalapi_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The server refuses queries that would time out before the first task of an execution.
func TestAQueryWaitsForTheFirstTask(t *testing.T) {
	c, begins := mocks.NewClient(t), time.Now().Add(2*temporalapi.QueryTimeout)
	waits := func(ctx context.Context) bool {
		deadline, ok := ctx.Deadline()
		return ok && deadline.After(begins)
	}
	query := func(does bool) *mock.Call {
		return c.On("QueryWorkflow", mock.MatchedBy(func(ctx context.Context) bool { return waits(ctx) == does }), "r", "e", spec.QueryStatus).Once()
	}
	query(false).Return(nil, serviceerror.NewWorkflowNotReady("Workflow task is not scheduled yet."))
	want := mocks.NewEncodedValue(t)
	query(true).Return(want, nil)
	v, err := temporalapi.Query(t.Context(), c, "r", "e", spec.QueryStatus)
	require.NoError(t, err)
	assert.Same(t, want, v)
}
