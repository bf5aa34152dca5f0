package devserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/server/api/historyservice/v1"
	"google.golang.org/grpc"
)

// busyHistory answers when its caller has given up.
type busyHistory struct {
	historyservice.HistoryServiceClient
	patience context.Context // of the first caller
}

func (h busyHistory) answer(ctx context.Context) error {
	<-h.patience.Done()
	if errors.Is(h.patience.Err(), context.Canceled) {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h busyHistory) RecordWorkflowTaskStarted(ctx context.Context, _ *historyservice.RecordWorkflowTaskStartedRequest, _ ...grpc.CallOption) (*historyservice.RecordWorkflowTaskStartedResponse, error) {
	return &historyservice.RecordWorkflowTaskStartedResponse{}, h.answer(ctx)
}

func (h busyHistory) RecordActivityTaskStarted(ctx context.Context, _ *historyservice.RecordActivityTaskStartedRequest, _ ...grpc.CallOption) (*historyservice.RecordActivityTaskStartedResponse, error) {
	return &historyservice.RecordActivityTaskStartedResponse{}, h.answer(ctx)
}

// A run of half a second took fourteen: history had recorded that a task has started,
// and its answer came after the second for which matching waits.
func TestATaskWhoseStartIsRecordedLateIsNotLost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	h := patientHistory{busyHistory{patience: ctx}}
	_, err := h.RecordWorkflowTaskStarted(ctx, nil)
	require.NoError(t, err)
	_, err = h.RecordActivityTaskStarted(ctx, nil)
	require.NoError(t, err)

	// The worker has hung up: then nothing is to be started for it.
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	h = patientHistory{busyHistory{patience: gone}}
	_, err = h.RecordWorkflowTaskStarted(gone, nil)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = h.RecordActivityTaskStarted(gone, nil)
	assert.ErrorIs(t, err, context.Canceled)
}
