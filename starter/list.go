package starter

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ListOptions selects runs.
type ListOptions struct {
	// Open limits the list to open runs, Ended to ended ones, and Failed to runs that neither
	// succeeded nor were cancelled.
	Open, Ended, Failed bool
	// Since and Until limit the start time. Zero means no limit.
	Since, Until time.Time
	// Name is a [path.Match] pattern for the name or the ID. If empty, it matches all runs.
	Name string
	// Owner is the user who started the run. Host is a host that runs its tasks or ran them
	// last. An empty field matches all runs.
	Owner, Host string
	// Cause is the cause of the run's end; see [spec.RunResult.Cause]. If empty, it matches all
	// runs, including open ones.
	Cause string
	// Facts makes List look up [Summary.Facts], [Summary.LastOutput] and [Summary.After], with
	// one request per open run.
	Facts bool
	// Limit is the maximum number of runs to return. Default 20.
	Limit int
	// OpenFirst sorts open runs before ended ones.
	OpenFirst bool
	// Trials adds the trials of sweeps.
	Trials bool
	// ID is a [path.Match] pattern for the ID. If empty, it matches all runs.
	ID string
}

// Summary describes one run in a list.
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
	// Sweep reports whether it is a sweep. Tasks is then the number of trials.
	Sweep bool `json:"sweep,omitempty"`
	// TrialOf is a trial's sweep.
	TrialOf string `json:"-"`
	Open    bool   `json:"open"`
	// State is "pending", "waiting", "running" or "paused" while the run is open. A run that is waiting
	// begins after the ends of the runs in After.
	State string   `json:"state,omitempty"`
	After []string `json:"after,omitempty"`
	// Verdict is empty while the run is open. A run that was terminated without a result has
	// failed; Ending is then "terminated".
	Verdict spec.Verdict `json:"verdict,omitempty"`
	// Cause is the cause of the run's end. It is empty if the run is open or had no process.
	Cause spec.Cause `json:"cause,omitempty"`
	// Hosts are the hosts that have its tasks, or had them last. Restarts counts the processes
	// that were started again, as noted by the run; see [spec.AttributeRestarts].
	Hosts    []string `json:"hosts,omitempty"`
	Restarts int      `json:"restarts,omitempty"`
	// Priority is from 1 to 5, or 0 if the server does not know it.
	Priority int `json:"priority,omitempty"`
	// ExitCode is the exit code of `clusterrun wait`.
	ExitCode int       `json:"exit_code"`
	Ending   string    `json:"ending,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Facts are the facts about an open run that need attention, as far as hosts report them.
	Facts []outcome.Fact `json:"facts,omitempty"`
	// LastOutput is the time at which a process of an open run last wrote output, by the clock
	// of its host. It is zero if no process has, or if that is not known.
	LastOutput time.Time `json:"last_output,omitzero"`
	// taskCount is the number of tasks, or 0 if the server does not know it.
	taskCount int
	// began is when this execution started.
	began time.Time
}

// List finds runs, sorted by start time, latest first. With o.OpenFirst, open runs come first.
func List(ctx context.Context, c client.Client, o ListOptions) ([]Summary, error) {
	if o.Limit <= 0 {
		o.Limit = 20
	}
	var runs []Summary
	for _, open := range []bool{true, false} {
		if open && (o.Ended || o.Failed || o.Cause != "") || !open && o.Open {
			continue
		}
		var err error
		if runs, err = o.latest(ctx, c, runs, open); err != nil {
			return nil, err
		}
	}
	verdicts(ctx, c, runs)
	if o.Facts {
		heartbeats(ctx, c, runs)
	}
	return runs, nil
}

const (
	// firstPage is how many runs the first page adds to those shown. Each page is larger than
	// the one before, up to lastPage.
	firstPage, lastPage = 20, 1000
)

// latest adds the open or the ended runs to found and returns the first o.Limit of the result.
// The server lists open runs by start time and ended runs by end time, latest first, so every
// run on a later page started before the last run of this page started or ended.
func (o ListOptions) latest(ctx context.Context, c client.Client, found []Summary, open bool) ([]Summary, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: o.query(open), PageSize: int32(min(o.Limit+firstPage, lastPage))}
	before := time.Now()
	for {
		r, err := c.ListWorkflow(ctx, request)
		if unknown := runs.RefusedAttribute(err); unknown != "" {
			return nil, fmt.Errorf("the server does not have the search attribute %s; register the attributes with `%s`, and runs started from then on can be found by them", unknown, spec.RegisterAttributes())
		}
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, e := range r.GetExecutions() {
			if s := summarise(e); o.match(s) {
				found = append(found, s)
			}
			before = e.GetStartTime().AsTime()
			if !open {
				before = e.GetCloseTime().AsTime()
			}
		}
		found = withoutDuplicates(found)
		slices.SortStableFunc(found, o.compare)
		found = found[:min(len(found), o.Limit)]
		request.NextPageToken = r.GetNextPageToken()
		switch {
		case len(request.NextPageToken) == 0,
			before.Before(o.Since),
			len(found) == o.Limit && (o.OpenFirst && found[len(found)-1].Open && !open || !found[len(found)-1].Started.Before(before)):
			return found, nil
		}
		request.PageSize = min(2*request.PageSize, lastPage)
	}
}

// compare orders a list.
func (o ListOptions) compare(a, b Summary) int {
	switch {
	case !o.OpenFirst || a.Open == b.Open:
		return b.Started.Compare(a.Started)
	case a.Open:
		return -1
	}
	return 1
}

// withoutDuplicates returns each run once. A run that ended after the open runs were listed is
// in both lists. A sweep with repeated failed trials has several executions with the first one's
// start, and the last execution stands for the sweep.
func withoutDuplicates(runs []Summary) []Summary {
	type execution struct{ run, id string }
	at := make(map[execution]int, len(runs))
	once := []Summary{} // encoded in JSON as an empty list, not null
	for _, r := range runs {
		e := execution{r.RunID, r.ExecutionID}
		if r.Sweep {
			e.id = r.Started.UTC().Truncate(time.Microsecond).String() // the server's precision
		}
		i, ok := at[e]
		switch {
		case !ok:
			at[e] = len(once)
			once = append(once, r)
		case r.began.After(once[i].began), r.ExecutionID == once[i].ExecutionID && once[i].Open:
			once[i] = r
		}
	}
	return once
}

// query returns the server's query for open or for ended runs.
func (o ListOptions) query(open bool) string {
	types := []string{spec.WorkflowType, spec.SweepWorkflowType}
	if o.Trials {
		types = append(types, spec.TrialWorkflowType)
	}
	query := fmt.Sprintf("WorkflowType IN ('%s') AND ", strings.Join(types, "', '"))
	switch {
	case open:
		query += workflowstatus.Open
	case o.Failed:
		query += "ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut')"
	default:
		// A run's last execution stands for the run.
		query += workflowstatus.Closed + " AND ExecutionStatus != 'ContinuedAsNew'"
	}
	if prefix := literalPrefix(o.Name); prefix != "" {
		is := "="
		if prefix != o.Name {
			is = "STARTS_WITH"
		}
		query += fmt.Sprintf(" AND (WorkflowId %s %s OR %s %s %s)", is, temporalapi.Quoted(prefix), spec.AttributeName, is, temporalapi.Quoted(prefix))
	}
	if prefix := literalPrefix(o.ID); prefix != "" {
		query += " AND WorkflowId STARTS_WITH " + temporalapi.Quoted(prefix)
	}
	if o.Owner != "" {
		query += fmt.Sprintf(" AND %s = %s", spec.AttributeOwner, temporalapi.Quoted(o.Owner))
	}
	if o.Host != "" {
		query += fmt.Sprintf(" AND %s = %s", spec.AttributeHost, temporalapi.Quoted(o.Host))
	}
	if o.Cause != "" {
		query += fmt.Sprintf(" AND %s = %s", spec.AttributeCause, temporalapi.Quoted(o.Cause))
	}
	return query
}

// literalPrefix returns the part of a pattern before its first special character.
func literalPrefix(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// match reports whether a run matches the options that a query cannot express.
func (o ListOptions) match(s Summary) bool {
	matches := func(pattern, name string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	}
	return (o.Name == "" || matches(o.Name, s.Name) || matches(o.Name, s.RunID)) &&
		(o.ID == "" || matches(o.ID, s.RunID)) &&
		!s.Started.Before(o.Since) && (o.Until.IsZero() || s.Started.Before(o.Until))
}

func summarise(e *workflowpb.WorkflowExecutionInfo) Summary {
	s := Summary{
		RunID:       e.GetExecution().GetWorkflowId(),
		ExecutionID: e.GetExecution().GetRunId(),
		Name:        memoText(e, runs.MemoName),
		Owner:       memoText(e, runs.MemoOwner),
		Tasks:       memoText(e, runs.MemoTasks),
		Command:     memoText(e, runs.MemoCommand),
		Dir:         memoText(e, runs.MemoDir),
		Queue:       e.GetTaskQueue(),
		Sweep:       e.GetType().GetName() == spec.SweepWorkflowType,
		Open:        workflowstatus.IsOpen(e.GetStatus()),
		Started:     startOf(e),
		began:       e.GetStartTime().AsTime(),
	}
	if e.GetType().GetName() == spec.TrialWorkflowType {
		s.TrialOf, _, _ = spec.SplitTrialID(s.RunID)
	}
	var priority, verdict, cause, exitCode string
	for name, value := range map[string]any{
		spec.AttributeHost: &s.Hosts, spec.AttributeRestarts: &s.Restarts, spec.AttributeTasks: &s.taskCount, spec.AttributePriority: &priority,
		spec.AttributeVerdict: &verdict, spec.AttributeCause: &cause, spec.AttributeExitCode: &exitCode,
	} {
		if p := e.GetSearchAttributes().GetIndexedFields()[name]; p != nil {
			_ = converter.GetDefaultDataConverter().FromPayload(p, value) // if its type differs, clusterrun did not set it
		}
	}
	if slices.Equal(s.Hosts, []string{spec.AttributeNone}) {
		s.Hosts = nil
	}
	s.Priority, _ = strconv.Atoi(priority)
	if s.Open {
		if s.State = s.firstState(); workflowstatus.IsPaused(e.GetStatus()) {
			s.State = outcome.StatePaused
		}
		return s
	}
	s.Ended = e.GetCloseTime().AsTime()
	switch e.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		s.Verdict = spec.VerdictSucceeded
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		r := (&TerminatedError{}).Result()
		s.Verdict, s.ExitCode, s.Ending = r.Verdict, r.ExitCode, outcome.Terminated
	default:
		if code, err := strconv.Atoi(exitCode); err == nil {
			s.Verdict, s.ExitCode = spec.Verdict(verdict), code
		}
	}
	if cause != spec.AttributeNone {
		s.Cause = spec.Cause(cause)
	}
	return s
}

// verdicts looks up the results of runs that lack the search attributes and are ambiguous,
// because a failed workflow is either a failed run or one that timed out.
func verdicts(ctx context.Context, c client.Client, runs []Summary) {
	each(runs, func(s *Summary) bool { return !s.Open && s.Verdict == "" && s.Ending == "" }, func(s *Summary) {
		if result, _ := Get(c, s.RunID, s.ExecutionID).Wait(ctx); result != nil {
			s.Verdict, s.ExitCode, s.Cause = result.Verdict, result.ExitCode, result.Cause()
		}
	})
}

// heartbeatsTake limits the wait for the last reports from the hosts of open runs.
const heartbeatsTake = 2 * time.Second

// heartbeats looks up each open run's state, the time of its last output, and its hosts'
// reports. It omits facts that are currently unknown.
func heartbeats(ctx context.Context, c client.Client, runs []Summary) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatsTake)
	defer cancel()
	each(runs, func(s *Summary) bool { return s.Open }, func(s *Summary) {
		r := Get(c, s.RunID, s.ExecutionID)
		d, err := r.describe(ctx)
		if err != nil {
			return
		}
		pending, err := r.pending(ctx, d)
		if err != nil {
			return
		}
		s.observe(pending)
		seen := &Status{RunID: s.RunID, Queue: s.Queue, Open: true, State: spec.RunRunning}
		for _, a := range pending {
			if name, _, ofTask := spec.TaskOfActivity(a.GetActivityId()); ofTask {
				seen.Tasks = append(seen.Tasks, TaskStatus{TaskStatus: spec.TaskStatus{Name: name, State: spec.TaskRunning, Activity: a.GetActivityId()}})
			}
		}
		slices.SortFunc(seen.Tasks, func(a, b TaskStatus) int { return strings.Compare(a.Name, b.Name) })
		merge(seen, pending)
		if at := seen.LastOutput(); at != nil {
			s.LastOutput = *at
		}
		s.Facts = outcome.Urgent(outcome.Facts(seen, time.Now()))
	})
}

// each calls do, concurrently, for the runs that need it.
func each(runs []Summary, needs func(*Summary) bool, do func(*Summary)) {
	background.Each(8, runs, func(i int, _ Summary) {
		if s := &runs[i]; needs(s) {
			do(s)
		}
	})
}
