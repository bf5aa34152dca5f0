package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/steptime"
)

// A Status describes a run, and a TaskStatus one of its tasks.
type (
	Status     = outcome.Status
	TaskStatus = outcome.TaskStatus
)

// Status returns the run's status. For an ended run, it comes from the result.
func (r *Run) Status(ctx context.Context) (*Status, error) {
	s, err := r.status(ctx)
	if err == nil {
		if s.Sweep != nil && s.Sweep.Trials == 0 {
			s.Sweep.Trials = r.countTrials(ctx)
		}
		s.Facts = outcome.Facts(s, time.Now())
	}
	return s, err
}

func (r *Run) status(ctx context.Context) (*Status, error) {
	d, err := r.describe(ctx)
	switch {
	case isNotFound(err):
		return nil, &NotFoundError{RunID: r.ID}
	case err != nil:
		return nil, fmt.Errorf("describe run %s: %w", r.ID, err)
	}
	info := d.GetWorkflowExecutionInfo()
	s := &Status{
		RunID:       r.ID,
		ExecutionID: cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()),
		Name:        memoText(info, runs.MemoName),
		Owner:       memoText(info, runs.MemoOwner),
		Command:     memoText(info, runs.MemoCommand),
		Dir:         memoText(info, runs.MemoDir),
		Queue:       info.GetTaskQueue(),
		Torchrun:    info.GetMemo().GetFields()[runs.MemoTorchrun] != nil,
		Open:        workflowstatus.IsOpen(info.GetStatus()),
		Paused:      workflowstatus.IsPaused(info.GetStatus()),
		Started:     startOf(info),
	}
	switch info.GetType().GetName() {
	case spec.SweepWorkflowType:
		s.Sweep = &spec.SweepStatus{} // until it is known
	case spec.TrialWorkflowType:
		s.TrialOf, _, _ = spec.SplitTrialID(r.ID)
	}
	if !s.Open {
		s.Ended = info.GetCloseTime().AsTime()
		result, err := Get(r.client, r.id, info.GetExecution().GetRunId()).Wait(ctx)
		fillEnded(s, result, err)
		if s.Result == nil && (s.Ending != outcome.Terminated || !fillTerminated(s, ctx, r)) {
			r.fillFromSpec(ctx, s, info.GetExecution().GetRunId())
		}
		return s, nil
	}
	var pending []*workflowpb.PendingActivityInfo
	var pendingErr error
	var described sync.WaitGroup
	described.Go(func() { pending, pendingErr = r.pending(ctx, d) })
	answer, err := r.query(ctx)
	described.Wait()
	switch {
	case err == nil:
		fillOpen(s, answer)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		s.Unanswered, s.Unattended = true, servererror.IsUnpolled(err)
		r.fillFromSpec(ctx, s, info.GetExecution().GetRunId())
	}
	if pendingErr != nil {
		return nil, fmt.Errorf("describe run %s: %w", r.ID, pendingErr)
	}
	merge(s, pending)
	compareSteps(s)
	waitingInFleet(s, ctx, r.client)
	return s, nil
}

// Files returns the run's files, given a status of it. The caller must close the result.
func (r *Run) Files(s *Status) *files.Files {
	return files.Of(s, func(ctx context.Context) ([]spec.HostService, error) {
		answer, err := r.query(ctx)
		if err != nil {
			return nil, err
		}
		return answer.Services, nil
	})
}

func (c *chain) query(ctx context.Context) (*spec.Status, error) {
	v, err := temporalapi.Query(ctx, c.client, c.id, c.latest(), spec.QueryStatus)
	if err != nil {
		return nil, err
	}
	var answer spec.Status
	if err := v.Get(&answer); err != nil {
		return nil, fmt.Errorf("the status of run %s has another version: %w", c.id, err)
	}
	return &answer, nil
}

func fillOpen(s *Status, answer *spec.Status) {
	s.State, s.Generation, s.Result, s.GroupRestarts = answer.State, answer.Generation, answer.Result, answer.GroupRestarts
	s.Stopping, s.OnDisconnect, s.GivenUpAfter, s.Services, s.Elastic, s.Archive, s.Stacks = answer.Stopping, answer.OnDisconnect, answer.GivenUpAfter, answer.Services, answer.Elastic, answer.Archive, answer.Stacks
	s.SilenceIgnoresCPU, s.Sweep = answer.SilenceIgnoresCPU, cmp.Or(answer.Sweep, s.Sweep)
	s.Preemptions, s.PendingSince, s.Notice = answer.Preemptions, answer.PendingSince, answer.Notice
	addTasks(s, answer.Tasks)
}

// addTasks adds the tasks in a workflow's answer to the status.
func addTasks(s *Status, tasks []spec.TaskStatus) {
	for _, t := range tasks {
		// The heartbeat, once there is one, is more exact.
		status := TaskStatus{TaskStatus: t, Restarts: s.Generation}
		if t.Exit != nil {
			status.LogDir = t.Exit.LogDir
		}
		s.Tasks = append(s.Tasks, status)
	}
}

// compareSteps finds the slow tasks of an open run.
func compareSteps(s *Status) {
	tasks := make([]steptime.Task, len(s.Tasks))
	for i, t := range s.Tasks {
		tasks[i] = steptime.Task{Name: t.Name, Type: t.Type, Host: t.Host, Rank: t.Rank, Time: t.Steps}
		if t.Exit != nil {
			tasks[i].Time = t.Exit.Steps
		}
	}
	s.Slow, s.TooFewSteps = steptime.Find(tasks), steptime.TooFew(tasks)
}

func fillEnded(s *Status, result *spec.RunResult, err error) {
	s.State, s.Result = spec.RunEnded, result
	if result == nil {
		if err != nil {
			s.Message = err.Error()
		}
		if end, ok := errors.AsType[*TerminatedError](err); ok {
			s.Verdict, s.Ending, s.Message = end.Result().Verdict, outcome.Terminated, end.how()
		}
		return
	}
	s.Sweep, s.Preemptions = cmp.Or(result.Sweep, s.Sweep), result.Preemptions
	s.Generation, s.Verdict, s.GroupRestarts, s.Slow = result.Generation, result.Verdict, result.GroupRestarts, result.Slow
	for _, t := range result.Tasks {
		status := TaskStatus{
			TaskStatus: spec.TaskStatus{
				Name: t.Name, Type: t.Type, Index: t.Index, Rank: t.Rank, Host: t.Host,
				State: spec.TaskEnded, Exit: t.Exit,
			},
			Restarts: t.Restarts,
		}
		if t.Exit != nil {
			status.PID, status.LogDir = t.Exit.PID, t.Exit.LogDir
		}
		s.Tasks = append(s.Tasks, status)
	}
}

// fillTerminated fills in what a terminated run's history records, namely its tasks' hosts, and
// the exits before the termination. It reports whether a host worker could read the history.
func fillTerminated(s *Status, ctx context.Context, r *Run) bool {
	answer, err := r.query(ctx)
	if err != nil {
		return false
	}
	s.Generation, s.GroupRestarts, s.Sweep = answer.Generation, answer.GroupRestarts, cmp.Or(answer.Sweep, s.Sweep)
	for i := range answer.Tasks {
		if t := &answer.Tasks[i]; t.Host != "" {
			t.State = spec.TaskEnded // its host stops it when the server reports the termination
		}
	}
	addTasks(s, answer.Tasks)
	return true
}

// fillFromSpec lists the tasks if the run does not report them.
func (c *chain) fillFromSpec(ctx context.Context, s *Status, execution string) {
	if s.Sweep != nil {
		return
	}
	started, err := c.spec(ctx, execution)
	if err != nil {
		return
	}
	for _, t := range started.TaskList() {
		s.Tasks = append(s.Tasks, TaskStatus{TaskStatus: spec.TaskStatus{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank}})
	}
}

// pending returns a run's and its groups' open activities.
func (c *chain) pending(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) ([]*workflowpb.PendingActivityInfo, error) {
	groups := slices.DeleteFunc(slices.Clone(d.GetPendingChildren()), func(child *workflowpb.PendingChildExecutionInfo) bool {
		return child.GetWorkflowTypeName() != spec.GroupWorkflowType || child.GetRunId() == ""
	})
	of := make([][]*workflowpb.PendingActivityInfo, len(groups))
	errs := make([]error, len(groups))
	background.Each(16, groups, func(i int, child *workflowpb.PendingChildExecutionInfo) {
		group, err := c.client.DescribeWorkflowExecution(ctx, child.GetWorkflowId(), child.GetRunId())
		if !isNotFound(err) {
			of[i], errs[i] = group.GetPendingActivities(), err
		}
	})
	return append(d.GetPendingActivities(), slices.Concat(of...)...), cmp.Or(errs...)
}

// merge adds facts from pending activities. A task's process and restarts are in its activity's
// heartbeats, because heartbeats do not add to the run's history.
func merge(s *Status, pending []*workflowpb.PendingActivityInfo) {
	tasks := map[string]*TaskStatus{}
	for i := range s.Tasks {
		if id := s.Tasks[i].Activity; id != "" {
			tasks[id] = &s.Tasks[i]
		}
		if s.Unanswered {
			tasks[s.Tasks[i].Name] = &s.Tasks[i]
		}
	}
	s.Waiting = waiting(s.Queue, pending)
	for _, a := range pending {
		t := tasks[a.GetActivityId()]
		if t == nil && s.Unanswered {
			name, _, _ := spec.TaskOfActivity(a.GetActivityId())
			if t = tasks[name]; t != nil {
				t.State = spec.TaskRunning
			}
		}
		if t == nil {
			continue
		}
		var beat spec.Heartbeat
		if decode(a.GetHeartbeatDetails(), &beat) {
			t.PID, t.Restarts, t.Started, t.LogDir = beat.PID, beat.Restarts, beat.Started, beat.LogDir
			t.Progress, t.Steps, t.Usage, t.LastOutput = beat.Progress, beat.Steps, beat.Usage, beat.LastOutput
			t.Unsupervised = beat.Unsupervised
			if beat.Host != "" {
				t.Host = beat.Host
			}
		}
		if f := a.GetLastFailure(); f.GetApplicationFailureInfo().GetType() == spec.ErrRestart {
			t.LastRestart = f.GetMessage()
		}
		isAway := a.GetLastFailure().GetApplicationFailureInfo().GetType() == spec.ErrAway
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetAttempt() > 1 && !isAway {
			t.PID, t.Steps, t.Usage, t.LastOutput = 0, nil, nil, time.Time{}
			t.NextStart = a.GetScheduledTime().AsTime()
			t.LastFailure = failureText(a.GetLastFailure())
			if f := a.GetLastFailure().GetApplicationFailureInfo(); f.GetType() == spec.ErrRestart {
				decode(f.GetDetails(), &t.Restarts) // a short-lived process has sent no heartbeat
			}
		}
	}
	s.Silent = silentHosts(time.Now(), time.Duration(s.GivenUpAfter), pending, func(id string) string {
		if t := tasks[id]; t != nil {
			return t.Host
		}
		return ""
	})
}

func decode(p *commonpb.Payloads, v any) bool {
	return len(p.GetPayloads()) > 0 && converter.GetDefaultDataConverter().FromPayloads(p, v) == nil
}

// startOf returns when an execution's run was started.
func startOf(info *workflowpb.WorkflowExecutionInfo) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, memoText(info, spec.MemoStarted)); err == nil {
		return at
	}
	return info.GetStartTime().AsTime()
}

func memoText(info *workflowpb.WorkflowExecutionInfo, key string) string {
	var text string
	if p := info.GetMemo().GetFields()[key]; p == nil || converter.GetDefaultDataConverter().FromPayload(p, &text) != nil {
		return ""
	}
	return text
}
