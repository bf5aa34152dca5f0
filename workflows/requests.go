package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// register installs the handlers. It must run before the workflow first blocks. Requests that
// arrive during placement are queued.
func (r *clusterRun) register(ctx workflow.Context) error {
	if err := answerStatusBy(ctx, r.report.answerStatus); err != nil {
		return err
	}
	handlers := []func(workflow.Context) error{
		update(r, spec.UpdateTerminateTask, "Ends tasks; their exits are ignored.", func(q spec.TaskRequest) (lifecycle.Event, error) {
			return lifecycle.TerminateTasks{TaskRequest: q}, nil
		}),
		update(r, spec.UpdateTerminateAll, "Ends all tasks, by default with SIGKILL.", func(q spec.TerminateAllRequest) (lifecycle.Event, error) {
			return lifecycle.TerminateAll{TerminateAllRequest: q}, nil
		}),
		update(r, spec.UpdateRestartTask, "Ends tasks and starts them again.", func(q spec.TaskRequest) (lifecycle.Event, error) {
			return lifecycle.RestartTasks{TaskRequest: q}, nil
		}),
		update(r, spec.UpdateSignalTask, "Sends a signal to tasks.", func(q spec.SignalRequest) (lifecycle.Event, error) {
			return lifecycle.SignalTasks{SignalRequest: q}, nil
		}),
		update(r, spec.UpdateStartTask, "Starts a task that ended, or one outside the spec.", func(q spec.StartTaskRequest) (lifecycle.Event, error) {
			t, err := r.spec.AddedTask(q)
			return lifecycle.StartTask{Task: t, New: q.New}, err
		}),
		update(r, spec.UpdateCaptureStacks, "Saves the stacks of processes.", func(q spec.StacksRequest) (lifecycle.Event, error) {
			return lifecycle.CaptureStacks{StacksRequest: q}, nil
		}),
		update(r, spec.UpdateExec, "Allows a command to be executed with a task.", func(q spec.ExecRequest) (lifecycle.Event, error) {
			return lifecycle.Exec{ExecRequest: q}, nil
		}),
		update(r, spec.UpdateSilent, "Reports that all tasks on a host are silent.", func(q spec.SilentRequest) (lifecycle.Event, error) {
			return lifecycle.Silent{SilentRequest: q}, nil
		}),
		update(r, spec.UpdateRestarted, "Tells that a host has restarted a task.", func(q spec.RestartedRequest) (lifecycle.Event, error) {
			return lifecycle.Restarted{RestartedRequest: q}, nil
		}),
		update(r, spec.UpdateRequestStop, "Stops the run, with grace.", func(q spec.StopRequest) (lifecycle.Event, error) {
			return lifecycle.Cancel{Reason: q.Reason}, nil
		}),
		r.stopTogether(),
		r.clearStop(),
		r.notice(),
	}
	for _, h := range handlers {
		if err := h(ctx); err != nil {
			return err
		}
	}
	return nil
}

// onHosts returns the function that carries out the request of an operator, or nil for any
// other action.
func (c *hostCalls) onHosts(a lifecycle.Action) onHosts {
	switch a := a.(type) {
	case lifecycle.TerminateTasks:
		return reach(c, hostapi.Host.TerminateTasks, a.Tasks, func(to hostapi.Group, tasks []string) hostapi.TerminateTasksInput {
			a.Tasks = tasks
			return hostapi.TerminateTasksInput{Group: to, TaskRequest: a.TaskRequest}
		})
	case lifecycle.RestartTasks:
		return reach(c, hostapi.Host.RestartTasks, a.Tasks, func(to hostapi.Group, tasks []string) hostapi.RestartTasksInput {
			a.Tasks = tasks
			return hostapi.RestartTasksInput{Group: to, TaskRequest: a.TaskRequest}
		})
	case lifecycle.SignalTasks:
		return reach(c, hostapi.Host.SignalTasks, a.Tasks, func(to hostapi.Group, tasks []string) hostapi.SignalTasksInput {
			a.Tasks = tasks
			return hostapi.SignalTasksInput{Group: to, SignalRequest: a.SignalRequest}
		})
	case lifecycle.CaptureStacks:
		return c.captureStacks(a.StacksRequest, requesting)
	case lifecycle.Exec:
		return reach(c, hostapi.Host.AllowExec, []string{a.Task}, func(to hostapi.Group, _ []string) hostapi.AllowExecInput {
			return hostapi.AllowExecInput{Group: to, ExecRequest: a.ExecRequest}
		})
	}
	return nil
}
