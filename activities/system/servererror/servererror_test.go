package servererror_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// An error has at most one meaning, even if it is wrapped.
func TestMeanings(t *testing.T) {
	meanings := map[string]func(error) bool{
		"transient": servererror.IsTransient, "moving": servererror.IsMoving, "not found": servererror.IsNotFound, "refused": servererror.IsRefused,
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{serviceerror.NewUnavailable("away"), "transient"},
		{serviceerror.NewDeadlineExceeded("slow"), "transient"},
		{serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "busy"), "transient"},
		{serviceerror.NewCanceled("cut"), "transient"},
		{context.DeadlineExceeded, "transient"},
		{serviceerror.NewWorkflowNotReady("in a moment"), "moving"},
		{temporal.NewApplicationError("in a moment", spec.ErrTryAgain), "moving"},
		{temporal.NewApplicationError("no", spec.ErrRefused), ""},
		{serviceerror.NewNotFound("who?"), "not found"},
		{serviceerror.NewInvalidArgument("what?"), "refused"},
		{serviceerror.NewPermissionDenied("no", ""), "refused"},
		{serviceerror.NewNamespaceNotFound("nowhere"), "refused"},
		{serviceerror.NewFailedPrecondition("too many updates"), "refused"},
		{errors.New("something else"), ""},
		{context.Canceled, ""},
	} {
		for name, means := range meanings {
			assert.Equal(t, name == c.want, means(c.err), "%T %v: %s", c.err, c.err, name)
			assert.Equal(t, name == c.want, means(fmt.Errorf("start run x: %w", c.err)), "%T wrapped: %s", c.err, name)
		}
	}
}
