package starter

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/api/serviceerror"
)

func TestAFleetThatDoesNotAnswer(t *testing.T) {
	f := GetFleet(nil, "gpus")
	for _, err := range []error{
		serviceerror.NewDeadlineExceeded("query timed out before a worker could process it"),
		serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL"),
		context.DeadlineExceeded,
	} {
		said := f.requestError(err)
		assert.ErrorContains(t, said, "no host of queue \"gpus\" answers; is a `clusterrun worker` running?")
		assert.ErrorIs(t, said, err)
	}
	assert.EqualError(t, f.requestError(errors.New("no route")), "queue gpus: no route")
}
