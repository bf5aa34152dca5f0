package server

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Only an answer of the server about the task is contact. The SDK returns a
// DeadlineExceeded of its own when connections are refused.
func TestContactIsAnAnswer(t *testing.T) {
	for _, err := range []error{nil, temporal.NewCanceledError(), activity.ErrActivityPaused, activity.ErrActivityReset} {
		assert.True(t, IsContact(err), "%v", err)
	}
	for _, err := range []error{
		serviceerror.NewDeadlineExceeded("connection refused"), serviceerror.NewUnavailable("away"), context.DeadlineExceeded,
		context.Canceled, serviceerror.NewPermissionDenied("who are you", ""), serviceerror.NewResourceExhausted(0, "later"),
		serviceerror.NewInternal("oops"), serviceerror.NewNotFound("over"), errors.New("broken pipe"),
	} {
		assert.False(t, IsContact(err), "%v", err)
	}
}
