package servererror

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
)

func TestPatiently(t *testing.T) {
	var told []string
	notify := func(err error) { told = append(told, fmt.Sprint(err)) }
	answers := []error{context.DeadlineExceeded, serviceerror.NewUnavailable("away"), nil}
	next := func() (err error) {
		err, answers = answers[0], answers[1:]
		return err
	}
	require.NoError(t, Patiently(t.Context(), notify, next))
	assert.Equal(t, []string{"context deadline exceeded", "<nil>"}, told)

	answers, told = []error{serviceerror.NewNotFound("who?")}, nil
	require.Error(t, Patiently(t.Context(), notify, next))
	assert.Empty(t, told, "that does not pass with time")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answers = []error{context.DeadlineExceeded}
	require.ErrorIs(t, Patiently(ctx, notify, next), context.DeadlineExceeded)
}
