package server

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// ReadShared reads a value that a run shares with its hosts: a workflow's input.
func (s *Server) ReadShared(ctx context.Context, at hostapi.Shared, value any) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	first, err := c.GetWorkflowHistory(ctx, at.WorkflowID, at.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if err == nil {
		err = codec.Converter.FromPayloads(first.GetWorkflowExecutionStartedEventAttributes().GetInput(), value)
	}
	if err != nil {
		return fmt.Errorf("read what the run shares with its hosts, from workflow %s: %w", at.WorkflowID, err)
	}
	return nil
}
