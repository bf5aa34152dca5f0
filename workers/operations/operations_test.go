package operations

import (
	"testing"

	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Input that cannot be run fails the operation before anything starts, with a remedy.
func TestBadInput(t *testing.T) {
	start := func(input converter.RawValue) error {
		_, err := start(t.Context(), input, nexus.StartOperationOptions{})
		return err
	}
	wait := func(input converter.RawValue) error {
		_, err := newWait().Start(t.Context(), input, nexus.StartOperationOptions{})
		return err
	}
	for _, c := range []struct {
		operation       func(converter.RawValue) error
		input           string
		errorType, want string
	}{
		{start, ``, spec.ErrInvalidRequest, `give {"spec"`},
		{start, `{"command": ["true"]}`, spec.ErrInvalidRequest, "command"},
		{start, `{"spec": {}, "id": 7}`, spec.ErrInvalidRequest, "id"},
		{start, `{}`, spec.ErrInvalidRunSpec, "empty"},
		{start, `{"spec": {"comand": ["true"], "tasks": [{"type": "worker"}]}}`, spec.ErrInvalidRunSpec, "comand"},
		{wait, `{}`, spec.ErrInvalidRequest, "names no run"},
		{wait, `{"run": "iris"}`, spec.ErrInvalidRequest, `give {"id"`},
		{wait, `[]`, spec.ErrInvalidRequest, "object"},
	} {
		err := c.operation(converter.NewRawValue(&commonpb.Payload{Data: []byte(c.input)}))
		var ended *nexus.OperationError
		require.ErrorAs(t, err, &ended, c.input)
		assert.Equal(t, nexus.OperationStateFailed, ended.State)
		var cause *temporal.ApplicationError
		require.ErrorAs(t, err, &cause)
		assert.Equal(t, c.errorType, cause.Type(), c.input)
		assert.Contains(t, cause.Message(), c.want, c.input)
	}
}

// An input that is still encoded is left to another worker.
func TestInputWithoutKey(t *testing.T) {
	input := converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{
		"encoding": []byte(spec.PayloadEncoding), spec.PayloadKey: []byte("k1"),
	}})
	_, err := start(t.Context(), input, nexus.StartOperationOptions{})
	var handler *nexus.HandlerError
	require.ErrorAs(t, err, &handler)
	assert.True(t, handler.Retryable())
}

// Each attempt of a request has the same run ID.
func TestIDOf(t *testing.T) {
	assert.Equal(t, runs.IDOf("iris", "request-1"), runs.IDOf("iris", "request-1"))
	assert.NotEqual(t, runs.IDOf("iris", "request-1"), runs.IDOf("iris", "request-2"))
	assert.Regexp(t, "^run-[a-z0-9]{8}$", runs.IDOf("", "request-1"))
}
