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
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/system/parallel"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/steptime"
)

// Status joins the facts from the run, the server, and the last reports of the hosts.
type Status struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Name        string `json:"name,omitempty"`
	Owner       string `json:"owner,omitempty"`
	// Command and Dir are as in [Summary].
	Command string `json:"command,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Queue   string `json:"queue"`
	// Torchrun is as in [Options].
	Torchrun bool `json:"-"`
	// Open reports whether the run has not ended.
	Open       bool          `json:"open"`
	State      spec.RunState `json:"state"`
	Generation int           `json:"generation"`
	Started    time.Time     `json:"started,omitzero"`
	Ended      time.Time     `json:"ended,omitzero"`
	// Unanswered reports whether no worker answers for the run's workflow at the moment. Of the
	// tasks, it is then only known which are running. If a run ended without a result, nothing
	// is known about any of its tasks.
	Unanswered bool `json:"unanswered,omitempty"`
	// Unattended reports whether it is unanswered because no worker executes it. Otherwise a
	// worker polled less than half a minute ago, which may be frozen or cut off.
	Unattended bool `json:"unattended,omitempty"`
	// Paused reports whether it is unanswered because Temporal has paused its workflow.
	Paused bool         `json:"paused,omitempty"`
	Tasks  []TaskStatus `json:"tasks"`
	// GroupRestarts are the last restarts of the whole group, the oldest first.
	GroupRestarts []spec.GroupRestart `json:"group_restarts,omitempty"`
	// Waiting are the places that the run waits for.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Stopping is set while the tasks are stopping together.
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Preemptions counts the returns to the queue after a notice, and PendingSince is the time of
	// a return to the queue if the run is pending again.
	Preemptions  int       `json:"preemptions,omitempty"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// Notice is set while the tasks have notice that they will be stopped.
	Notice *spec.StopNotice `json:"notice,omitempty"`
	// Verdict is the verdict of a run that has ended, even without a result; Ending is then
	// "terminated".
	Verdict spec.Verdict `json:"verdict,omitempty"`
	Ending  string       `json:"ending,omitempty"`
	// Silent are the hosts that have not sent anything for a while.
	Silent []SilentHost `json:"silent,omitempty"`
	// Slow are the tasks and hosts that take longer for a step than others, the slowest first.
	Slow []spec.Slow `json:"slow,omitempty"`
	// TooFewSteps reports whether tasks of an open run could be compared if more of their steps
	// were known.
	TooFewSteps bool `json:"too_few_steps,omitempty"`
	// Stacks has the stacks of the tasks of an open run as of its last capture.
	Stacks *stacktree.Findings `json:"stacks,omitempty"`
	// Elastic is set if the number of hosts may change and the run is open.
	Elastic *spec.ElasticStatus `json:"elastic,omitempty"`
	// OnDisconnect is the action of hosts without contact to the server.
	OnDisconnect spec.OnDisconnect `json:"on_disconnect,omitempty"`
	// SilenceIgnoresCPU reports whether a task of an open run can be silent although it uses
	// processor time.
	SilenceIgnoresCPU bool `json:"silence_ignores_cpu,omitempty"`
	// Archive is the directory that an open run ships.
	Archive *spec.Archive `json:"archive,omitempty"`
	// Services are the services of the hosts of an open run; see [Run.Services].
	Services []spec.HostService `json:"-"`
	// Sweep is set for a sweep, which has trials and no tasks.
	Sweep *spec.SweepStatus `json:"sweep,omitempty"`
	// Trials are the trials of a sweep; see [Run.Trials].
	Trials []Trial `json:"trials,omitempty"`
	// Result is set once the run has ended and left one.
	Result *spec.RunResult `json:"result,omitempty"`
	// Message is why an ended run has no result.
	Message string `json:"message,omitempty"`
}

// TaskStatus is the status of one task.
type TaskStatus struct {
	spec.TaskStatus
	PID      int       `json:"pid,omitempty"`
	Restarts int       `json:"restarts,omitempty"`
	Started  time.Time `json:"process_started,omitzero"`
	LogDir   string    `json:"log_dir,omitempty"`
	// Progress is the progress that the task has reported.
	Progress *spec.Progress `json:"progress,omitempty"`
	// Steps has the step times of the living process, or is nil if it has reported none. After
	// its end they are in Exit.
	Steps *spec.StepTime `json:"steps,omitempty"`
	// Usage is the resource usage of the living process, or nil if it is not known. After its
	// end it is in Exit.
	Usage *spec.LiveUsage `json:"usage,omitempty"`
	// LastOutput is the time at which the living process last wrote output, by the clock of its
	// host. It is zero if the process has written none, or if that is not known.
	LastOutput time.Time `json:"last_output,omitzero"`
	// NextStart is the time at which the task is restarted, if it waits for that.
	NextStart time.Time `json:"next_start,omitzero"`
	// LastFailure is why it is restarted.
	LastFailure string `json:"last_failure,omitempty"`
}

const (
	// queryTimeout bounds a query, which uses all of it if no worker answers.
	queryTimeout = 3 * time.Second
	// queryTries is the number of times that a query is sent if it gets no answer in time. The
	// server may have given the first one to a host worker that is frozen; another host worker
	// takes the next.
	queryTries = 2
	// queryPause is the time between two tries to ask a fleet.
	queryPause = 100 * time.Millisecond
)

// LastOutput returns when a living process of the run last wrote output. It returns nil if no
// process has, or if that is not known.
func (s *Status) LastOutput() *time.Time {
	var last time.Time
	for _, t := range s.Tasks {
		if t.LastOutput.After(last) {
			last = t.LastOutput
		}
	}
	if last.IsZero() {
		return nil
	}
	return &last
}

// Absence returns what is wrong with a run that does not answer, or "".
func (s *Status) Absence() string {
	switch {
	case s.Paused:
		return "paused in Temporal: it decides nothing until it is unpaused there"
	case s.Unattended:
		return "no host worker executes it"
	case s.Unanswered:
		return "its host worker does not answer"
	}
	return ""
}

// Status returns the status of the run. It describes an ended run from its result.
func (r *Run) Status(ctx context.Context) (*Status, error) {
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
	if !s.Open {
		s.Ended = info.GetCloseTime().AsTime()
		s.fillEnded(Get(r.client, r.id, info.GetExecution().GetRunId()).Wait(ctx))
		if s.Result == nil && (s.Ending != terminated || !s.fillTerminated(ctx, r)) {
			s.fillFromSpec(r.spec(ctx, info.GetExecution().GetRunId()))
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
		s.fillOpen(answer)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		s.Unanswered, s.Unattended = true, servererror.IsUnpolled(err)
		s.fillFromSpec(r.spec(ctx, info.GetExecution().GetRunId()))
	}
	if pendingErr != nil {
		return nil, fmt.Errorf("describe run %s: %w", r.ID, pendingErr)
	}
	s.merge(pending)
	s.compareSteps()
	s.waitingInFleet(ctx, r.client)
	return s, nil
}

// Services returns the services from which the files of the run on its hosts can be read, also
// after its end. It omits hosts that do not serve them.
func (r *Run) Services(ctx context.Context) ([]spec.HostService, error) {
	answer, err := r.query(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Services, nil
}

// GroupRestarts returns the last restarts of the group of an open run, the oldest first.
func (r *Run) GroupRestarts(ctx context.Context) ([]spec.GroupRestart, error) {
	answer, err := r.query(ctx)
	if err != nil {
		return nil, err
	}
	return answer.GroupRestarts, nil
}

// RestartReasons returns the reasons of the last restarts of tasks of an open run, by task
// name.
func (r *Run) RestartReasons(ctx context.Context) (map[string]string, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, err
	}
	pending, err := r.pending(ctx, d)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for _, a := range pending {
		if f := a.GetLastFailure(); f.GetApplicationFailureInfo().GetType() == spec.ErrRestart {
			task, _, _ := spec.TaskOfActivity(a.GetActivityId())
			reasons[task] = f.GetMessage()
		}
	}
	return reasons, nil
}

func (c *chain) query(ctx context.Context) (*spec.Status, error) {
	v, err := queryOf(ctx, c.client, c.id, c.latest(), spec.QueryStatus)
	if err != nil {
		return nil, err
	}
	var answer spec.Status
	if err := v.Get(&answer); err != nil {
		return nil, fmt.Errorf("the status of run %s has another version: %w", c.id, err)
	}
	return &answer, nil
}

// queryOf sends a query to a workflow.
func queryOf(ctx context.Context, c client.Client, id, execution, query string) (v converter.EncodedValue, err error) {
	for range queryTries {
		trying, cancel := context.WithTimeout(ctx, queryTimeout)
		v, err = c.QueryWorkflow(trying, id, execution, query)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !IsError[*serviceerror.DeadlineExceeded](err) || ctx.Err() != nil {
			break
		}
	}
	return v, err
}

func (s *Status) fillOpen(answer *spec.Status) {
	s.State, s.Generation, s.Result, s.GroupRestarts = answer.State, answer.Generation, answer.Result, answer.GroupRestarts
	s.Stopping, s.OnDisconnect, s.Services, s.Elastic, s.Archive, s.Stacks = answer.Stopping, answer.OnDisconnect, answer.Services, answer.Elastic, answer.Archive, answer.Stacks
	s.SilenceIgnoresCPU, s.Sweep = answer.SilenceIgnoresCPU, answer.Sweep
	s.Preemptions, s.PendingSince, s.Notice = answer.Preemptions, answer.PendingSince, answer.Notice
	s.addTasks(answer.Tasks)
}

// addTasks adds the tasks of an answer to the status.
func (s *Status) addTasks(tasks []spec.TaskStatus) {
	for _, t := range tasks {
		// The heartbeat is more exact, once there is one.
		status := TaskStatus{TaskStatus: t, Restarts: s.Generation}
		if t.Exit != nil {
			status.LogDir = t.Exit.LogDir
		}
		s.Tasks = append(s.Tasks, status)
	}
}

// compareSteps finds the tasks of an open run that are slow.
func (s *Status) compareSteps() {
	tasks := make([]steptime.Task, len(s.Tasks))
	for i, t := range s.Tasks {
		tasks[i] = steptime.Task{Name: t.Name, Type: t.Type, Host: t.Host, Rank: t.Rank, Time: t.Steps}
		if t.Exit != nil {
			tasks[i].Time = t.Exit.Steps
		}
	}
	s.Slow, s.TooFewSteps = steptime.Find(tasks), steptime.TooFew(tasks)
}

func (s *Status) fillEnded(result *spec.RunResult, err error) {
	s.State, s.Result = spec.RunEnded, result
	if result == nil {
		if err != nil {
			s.Message = err.Error()
		}
		if end, ok := errors.AsType[*TerminatedError](err); ok {
			s.Verdict, s.Ending, s.Message = end.Result().Verdict, terminated, end.how()
		}
		return
	}
	s.Sweep, s.Preemptions = result.Sweep, result.Preemptions
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

// fillTerminated fills in what the history of a terminated run has: the hosts of its tasks, and the
// ends of those that ended before. It reports whether a host worker could read the history.
func (s *Status) fillTerminated(ctx context.Context, r *Run) bool {
	answer, err := r.query(ctx)
	if err != nil {
		return false
	}
	s.Generation, s.GroupRestarts, s.Sweep = answer.Generation, answer.GroupRestarts, answer.Sweep
	for i := range answer.Tasks {
		if t := &answer.Tasks[i]; t.Host != "" {
			t.State = spec.TaskEnded // its host stops it when the server says so
		}
	}
	s.addTasks(answer.Tasks)
	return true
}

// Terminated reports whether the run was ended on the server, without the end of its tasks.
func (s *Status) Terminated() bool { return s.Ending == terminated }

// fillFromSpec lists the tasks of a run that does not report them.
func (s *Status) fillFromSpec(started *spec.RunSpec, err error) {
	if err != nil {
		return
	}
	for _, t := range started.TaskList() {
		s.Tasks = append(s.Tasks, TaskStatus{TaskStatus: spec.TaskStatus{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank}})
	}
}

// pending returns the open activities in the workflows of a run and of its groups.
func (c *chain) pending(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) ([]*workflowpb.PendingActivityInfo, error) {
	groups := slices.DeleteFunc(slices.Clone(d.GetPendingChildren()), func(child *workflowpb.PendingChildExecutionInfo) bool {
		return child.GetWorkflowTypeName() != spec.GroupWorkflowType || child.GetRunId() == ""
	})
	of := make([][]*workflowpb.PendingActivityInfo, len(groups))
	errs := make([]error, len(groups))
	parallel.Each(16, groups, func(i int, child *workflowpb.PendingChildExecutionInfo) {
		group, err := c.client.DescribeWorkflowExecution(ctx, child.GetWorkflowId(), child.GetRunId())
		if !isNotFound(err) {
			of[i], errs[i] = group.GetPendingActivities(), err
		}
	})
	return append(d.GetPendingActivities(), slices.Concat(of...)...), cmp.Or(errs...)
}

// merge adds facts from pending activities: the process and restarts of a task are in the
// heartbeats of its activity, because those add nothing to the history of the run.
func (s *Status) merge(pending []*workflowpb.PendingActivityInfo) {
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
			if beat.Host != "" {
				t.Host = beat.Host
			}
		}
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetAttempt() > 1 {
			t.PID, t.Steps, t.Usage, t.LastOutput = 0, nil, nil, time.Time{}
			t.NextStart = a.GetScheduledTime().AsTime()
			t.LastFailure = failureText(a.GetLastFailure())
		}
	}
	s.Silent = silentHosts(time.Now(), pending, func(id string) string {
		if t := tasks[id]; t != nil {
			return t.Host
		}
		return ""
	})
}

func decode(p *commonpb.Payloads, v any) bool {
	return len(p.GetPayloads()) > 0 && converter.GetDefaultDataConverter().FromPayloads(p, v) == nil
}

// startOf returns when the run of an execution was started.
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
