package starter

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
)

func TestAFleetThatDoesNotAnswer(t *testing.T) {
	f := GetFleet(nil, "gpus")
	for _, err := range []error{
		serviceerror.NewDeadlineExceeded("query timed out before a worker could process it"),
		serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL"),
		context.DeadlineExceeded,
	} {
		said := f.requestError(err)
		assert.ErrorContains(t, said, "no host in queue \"gpus\" answers; is a `clusterrun worker` running?")
		assert.ErrorIs(t, said, err)
	}
	assert.EqualError(t, f.requestError(errors.New("no route")), "queue gpus: no route")
}

// A busy server abandons a query before a worker has taken it. The client repeats the query.
func TestAFleetIsAskedAgain(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("QueryWorkflowWithOptions", mock.Anything, mock.Anything).Return(nil, serviceerror.NewDeadlineExceeded("busy")).Times(2)
	c.On("QueryWorkflowWithOptions", mock.Anything, mock.Anything).Return(&client.QueryWorkflowWithOptionsResponse{QueryRejected: &querypb.QueryRejected{}}, nil).Once()
	_, err := GetFleet(c, "gpus").Hosts(t.Context())
	assert.ErrorAs(t, err, new(*NoFleetError))
}
