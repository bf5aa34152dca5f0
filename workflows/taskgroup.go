package workflows

import (
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// maxOwn is the maximum number of simultaneous launches in one workflow. A run with more starts
// groups.
const maxOwn = 250

// GroupInput is the input of [TaskGroup].
type GroupInput struct {
	Carrier Carrier `json:"carrier"`
	// Common is the part of the input that all RunTask activities share.
	Common   hostapi.RunTaskInput `json:"common"`
	Launches []GroupLaunch        `json:"launches"`
}

// GroupLaunch is the part of a RunTask activity's input that differs between tasks.
type GroupLaunch struct {
	Task   string     `json:"task"`
	Launch int        `json:"launch,omitempty"`
	Added  *spec.Task `json:"added,omitempty"`
}

// TaskGroup carries out launches of a large run on one host. It decides nothing. A cancellation
// stops all of its tasks. While some tasks are still alive, it reports results to the run in
// signals; its own result reports the rest.
//
// At most one signal is in transit, and the next one carries all results since then, because a run
// that receives more than 100 events during one workflow task must repeat that task. The group's
// result repeats everything that the run may not have received.
func TaskGroup(ctx workflow.Context, in GroupInput) ([]lifecycle.TaskEnded, error) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	run := workflow.GetInfo(ctx).ParentWorkflowExecution
	selector := workflow.NewSelector(free)
	open := len(in.Launches)
	var unheard []lifecycle.TaskEnded
	telling, news := false, false
	in.Carrier.asking = &asking{}
	for _, l := range in.Launches {
		task := in.Common
		task.Task, task.Launch, task.Added = l.Task, l.Launch, l.Added
		f := in.Carrier.runTask(ctx, task, func(string) {})
		selector.AddFuture(f.Future, func(workflow.Future) {
			exit, err := f.get(free)
			unheard = append(unheard, in.Carrier.endOf(task, exit, err))
			open, news = open-1, true
		})
	}
	for open > 0 {
		selector.Select(free)
		if selector.HasPending() || open == 0 || telling || !news {
			continue
		}
		told := len(unheard)
		telling, news = true, false
		signal := workflow.SignalExternalWorkflow(free, run.ID, run.RunID, spec.SignalEnded, unheard)
		selector.AddFuture(signal, func(f workflow.Future) {
			telling = false
			if err := f.Get(free, nil); err != nil {
				workflow.GetLogger(free).Warn("the run was not notified of exited tasks", "error", err)
				return
			}
			unheard = slices.Clone(unheard[told:])
		})
	}
	return unheard, nil
}

// launchAll carries out a machine step's launches if they are too many for the run's own workflow,
// and returns the remaining actions.
func (r *clusterRun) launchAll(ctx workflow.Context, actions []lifecycle.Action) []lifecycle.Action {
	var launches []lifecycle.Launch
	var others []lifecycle.Action
	for _, a := range actions {
		if l, ok := a.(lifecycle.Launch); ok {
			launches = append(launches, l)
		} else {
			others = append(others, a)
		}
	}
	if len(launches) <= r.groupsAbove {
		return actions
	}
	var hosts []*host
	on := map[*host][]lifecycle.Launch{}
	for _, l := range launches {
		h := r.placer.hostOf(l.Task.Name())
		if on[h] == nil {
			hosts = append(hosts, h)
		}
		on[h] = append(on[h], l)
	}
	for _, h := range hosts {
		n := 0
		for some := range slices.Chunk(on[h], maxOwn) {
			r.startGroup(ctx, h, n, some)
			n++
		}
	}
	return others
}

// startGroup starts the nth group on a host in this execution and generation. When this execution
// closes, the server terminates the group, just as it closes the execution's activities.
func (r *clusterRun) startGroup(ctx workflow.Context, h *host, n int, launches []lifecycle.Launch) {
	info := workflow.GetInfo(ctx)
	in := GroupInput{Carrier: r.placer.carrierOn(h), Common: hostapi.RunTaskInput{
		Workflow: info.WorkflowExecution.ID, Run: r.began, Execution: r.execution, Generation: r.machine.Generation(),
	}}
	in.Carrier.Crowd = len(launches) >= crowd || r.machine.Size() >= crowds
	gctx, cancel := workflow.WithCancel(ctx)
	for _, a := range launches {
		name := a.Task.Name()
		r.placed[name], r.launches[name] = h, newLaunch(a, cancel)
		task := r.runTaskInput(a)
		in.Launches = append(in.Launches, GroupLaunch{Task: name, Launch: a.Launch, Added: task.Added})
	}
	group := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(gctx, workflow.ChildWorkflowOptions{
		WorkflowID:          spec.TaskGroupWorkflowID(info.WorkflowExecution.ID, info.OriginalRunID, in.Common.Generation, h.Name, n),
		ParentClosePolicy:   enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		WaitForCancellation: true,
		StaticSummary:       units.Count(len(launches), "task", "tasks") + " on " + markdown.Name(h.Name),
	}), spec.GroupWorkflowType, in)
	r.selector.AddFuture(group, func(f workflow.Future) {
		var ends []lifecycle.TaskEnded
		if err := f.Get(ctx, &ends); err != nil {
			// It is unknown whether the group's tasks ended, and how.
			workflow.GetLogger(ctx).Warn("a group was closed", "host", h.Name, "error", err)
			for _, a := range launches {
				ends = append(ends, lifecycle.TaskEnded{Task: a.Task.Name(), Generation: a.Generation, Launch: a.Launch})
			}
		}
		r.endedAll(ctx, ends)
	})
}

// endedAll passes the results that a group reports to the machine.
func (r *clusterRun) endedAll(ctx workflow.Context, ends []lifecycle.TaskEnded) {
	for _, e := range ends {
		r.ended(ctx, e)
	}
}
