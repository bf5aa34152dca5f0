package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// sharing is a server with one workflow, and the iterator over its history.
type sharing struct {
	client.Client
	at    hostapi.Shared
	input *commonpb.Payloads
	err   error
}

func (s *sharing) GetWorkflowHistory(_ context.Context, id, execution string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	if (hostapi.Shared{WorkflowID: id, RunID: execution}) != s.at {
		return &sharing{err: serviceerror.NewNotFound("no such execution")}
	}
	return s
}

func (s *sharing) HasNext() bool { return true }

func (s *sharing) Next() (*historypb.HistoryEvent, error) {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: s.input},
	}}, s.err
}

func TestReadShared(t *testing.T) {
	at := hostapi.Shared{WorkflowID: "iris/shared/1/1", RunID: "2"}
	want := hostapi.Cluster{Hosts: 2, Members: hostapi.Members{{Type: "worker", Host: "a"}, {Type: "worker", Index: 1, Host: "b"}}}
	input, err := codec.Converter.ToPayloads(want)
	require.NoError(t, err)
	var s Server
	var got hostapi.Cluster
	require.ErrorIs(t, s.ReadShared(t.Context(), at, &got), errNotConnected)
	s.Connect(&sharing{at: at, input: input})
	require.NoError(t, s.ReadShared(t.Context(), at, &got))
	assert.Equal(t, want, got)

	err = s.ReadShared(t.Context(), hostapi.Shared{WorkflowID: "iris/shared/1/1", RunID: "3"}, &got)
	require.ErrorContains(t, err, "from workflow iris/shared/1/1: no such execution")
	// A host without the key of an encrypted run names the key.
	input.Payloads[0].Metadata[converter.MetadataEncoding] = []byte(spec.PayloadEncoding)
	var missing *spec.MissingKeyError
	require.ErrorAs(t, s.ReadShared(t.Context(), at, &got), &missing)
}
