package starter

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
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
	// Open limits the list to runs that have not ended, and Failed to those that have ended
	// otherwise than well or by a cancellation.
	Open, Failed bool
	// Since and Until bound when they started. Zero: no bound.
	Since, Until time.Time
	// Name is a pattern of [path.Match] for the name or the ID. Empty: all.
	Name string
	// Dir is the working directory of the spec, Owner who started the run, and Host one that
	// has its tasks, or had them last. Empty: any.
	Dir, Owner, Host string
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
	// Command is the command line, or the start of a long one, of the first tasks.
	Command string `json:"command,omitempty"`
	// Dir is the working directory.
	Dir   string `json:"dir,omitempty"`
	Queue string `json:"queue"`
	Open  bool   `json:"open"`
	// Verdict is empty while the run is open. One that was terminated without a
	// result has failed; Ending is then "terminated".
	Verdict spec.Verdict `json:"verdict,omitempty"`
	// ExitCode is what `clusterrun wait` exits with.
	ExitCode int       `json:"exit_code"`
	Ending   string    `json:"ending,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// List finds runs, those that started last first.
func List(ctx context.Context, c client.Client, o ListOptions) ([]Summary, error) {
	if o.Limit <= 0 {
		o.Limit = 20
	}
	var runs []Summary
	for _, ago := range lookBack {
		all := ago == 0
		if since := time.Since(o.Since); !o.Since.IsZero() && (all || since < ago) {
			ago, all = since, true
		}
		var err error
		if runs, err = startedWithin(ctx, c, o, ago); err != nil {
			return nil, err
		}
		if all || len(runs) >= o.Limit {
			break
		}
	}
	slices.SortStableFunc(runs, func(a, b Summary) int { return b.Started.Compare(a.Started) })
	runs = runs[:min(len(runs), o.Limit)]
	verdicts(ctx, c, runs)
	return runs, nil
}

// lookBack are the times within which runs are looked for, until there are enough;
// 0: all. The server lists them by when they ended, so that those that started last
// can be anywhere among the others.
var lookBack = []time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 0}

// listPage is how many runs are asked for at a time.
const listPage = 1000

func startedWithin(ctx context.Context, c client.Client, o ListOptions, ago time.Duration) ([]Summary, error) {
	var runs []Summary
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: o.query(ago), PageSize: listPage}
	for {
		r, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, e := range r.GetExecutions() {
			if s := summarise(e); o.match(s) {
				runs = append(runs, s)
			}
		}
		if request.NextPageToken = r.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return runs, nil
		}
	}
}

// query finds the runs that started within a time; 0: all.
func (o ListOptions) query(ago time.Duration) string {
	// Of a run that went on in other executions the last one stands for all.
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", spec.WorkflowType)
	if o.Open {
		query += " AND ExecutionStatus = 'Running'"
	}
	if o.Failed {
		query += " AND ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut')"
	}
	if o.Host != "" {
		query += fmt.Sprintf(" AND %s = %s", spec.AttributeHost, quoted(o.Host))
	}
	if ago > 0 {
		query += fmt.Sprintf(" AND StartTime > '%s'", time.Now().Add(-ago).UTC().Format(time.RFC3339))
	}
	return query
}

// quoted writes a text in the server's language of queries.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

// match reports whether a run is one of those that are looked for, by what the server cannot
// be asked for everywhere.
func (o ListOptions) match(s Summary) bool {
	named := func(name string) bool {
		ok, err := path.Match(o.Name, name)
		return err == nil && ok
	}
	return (o.Name == "" || named(s.Name) || named(s.RunID)) &&
		(o.Dir == "" || o.Dir == s.Dir) &&
		(o.Owner == "" || o.Owner == s.Owner) &&
		!s.Started.Before(o.Since) && (o.Until.IsZero() || s.Started.Before(o.Until))
}

func summarise(e *workflowpb.WorkflowExecutionInfo) Summary {
	s := Summary{
		RunID:       e.GetExecution().GetWorkflowId(),
		ExecutionID: e.GetExecution().GetRunId(),
		Name:        memoText(e, memoName),
		Owner:       memoText(e, memoOwner),
		Tasks:       memoText(e, memoTasks),
		Command:     memoText(e, memoCommand),
		Dir:         memoText(e, memoDir),
		Queue:       e.GetTaskQueue(),
		Open:        e.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Started:     startOf(e),
	}
	if s.Open {
		return s
	}
	s.Ended = e.GetCloseTime().AsTime()
	switch e.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		s.Verdict = spec.VerdictSucceeded
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		r := (&TerminatedError{}).Result()
		s.Verdict, s.ExitCode, s.Ending = r.Verdict, r.ExitCode, terminated
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
