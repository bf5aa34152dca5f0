package starter

import (
	"context"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ListOptions choose runs.
type ListOptions struct {
	// Open limits the list to runs that have not ended.
	Open bool
	// Limit is the most runs to return. Default 20.
	Limit int
}

// Summary is one run in a list.
type Summary struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Name        string `json:"name,omitempty"`
	Owner       string `json:"owner,omitempty"`
	Tasks       string `json:"tasks,omitempty"`
	Queue       string `json:"queue"`
	Open        bool   `json:"open"`
	// Verdict is empty while the run is open, and for a run that was
	// terminated without a result; then Ending says so.
	Verdict spec.Verdict `json:"verdict,omitempty"`
	// ExitCode is what `clusterrun wait` exits with.
	ExitCode int       `json:"exit_code"`
	Ending   string    `json:"ending,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// List finds runs, the latest first.
func List(ctx context.Context, c client.Client, o ListOptions) ([]Summary, error) {
	if o.Limit <= 0 {
		o.Limit = 20
	}
	// Of a run that went on in other executions the last one stands for all.
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", spec.WorkflowType)
	if o.Open {
		query += " AND ExecutionStatus = 'Running'"
	}
	var runs []Summary
	var page []byte
	for len(runs) < o.Limit {
		r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: int32(o.Limit - len(runs)), NextPageToken: page,
		})
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, e := range r.GetExecutions() {
			runs = append(runs, summarise(e))
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	verdicts(ctx, c, runs)
	return runs, nil
}

func summarise(e *workflowpb.WorkflowExecutionInfo) Summary {
	s := Summary{
		RunID:       e.GetExecution().GetWorkflowId(),
		ExecutionID: e.GetExecution().GetRunId(),
		Name:        memoText(e, memoName),
		Owner:       memoText(e, memoOwner),
		Tasks:       memoText(e, memoTasks),
		Queue:       e.GetTaskQueue(),
		Open:        e.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Started:     e.GetStartTime().AsTime(),
	}
	if s.Open {
		return s
	}
	s.Ended = e.GetCloseTime().AsTime()
	switch e.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		s.Verdict = spec.VerdictSucceeded
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		s.Ending, s.ExitCode = "terminated", 125
	}
	return s
}

// verdicts looks up the results of those runs whose status does not tell
// everything: a failed workflow may be a failed run or one that timed out.
func verdicts(ctx context.Context, c client.Client, runs []Summary) {
	limit := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range runs {
		s := &runs[i]
		if s.Open || s.Verdict != "" || s.Ending != "" {
			continue
		}
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			if result, _ := Get(c, s.RunID, s.ExecutionID).Wait(ctx); result != nil {
				s.Verdict, s.ExitCode = result.Verdict, result.ExitCode
			}
		})
	}
	wg.Wait()
}
