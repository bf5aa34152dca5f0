package workers

import (
	"fmt"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/queue"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// polling is a side's set of workers.
type polling []worker.Worker

// stop stops the workers concurrently, because each waits for its polls.
func (p polling) stop() {
	var all sync.WaitGroup
	for _, w := range p {
		all.Go(w.Stop)
	}
	all.Wait()
}

// startWorkers polls the queues of DESIGN.md: the queue of the workflows, the private queues for
// reservations on any host and on this host, and this host worker's queue. With a local queue, all
// of these are one queue.
func (s *side) startWorkers() (polling, error) {
	all := s.workers()
	for i, w := range all {
		if err := w.Start(); err != nil {
			all[:i].stop()
			return nil, fmt.Errorf("poll this host's queues: %w", err)
		}
	}
	return all, nil
}

// workers returns the workers for the queues.
func (s *side) workers() (all polling) {
	if spec.IsLocalQueue(s.Queue) {
		w := s.worker(s.Queue, s.localOptions())
		s.registerWorkflows(w)
		s.registerChecks(w)
		s.registerTasks(w)
		return polling{w}
	}
	if s.Role.servesWorkflows() {
		w := s.worker(s.Queue, s.workflowOptions())
		s.registerWorkflows(w)
		all = append(all, w)
	}
	if s.Role.servesTasks() {
		all = append(all, s.taskWorkers()...)
	}
	return all
}

// worker returns a queue's worker. Sides with the same client have different identities.
func (s *side) worker(queue string, o worker.Options) worker.Worker {
	o.Identity = s.identity
	return worker.New(s.client, queue, o)
}

func (s *side) registerWorkflows(w worker.Worker) {
	w.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
	w.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.TrialWorkflowType})
	w.RegisterWorkflowWithOptions(workflows.Sweep, workflow.RegisterOptions{Name: spec.SweepWorkflowType})
	w.RegisterWorkflowWithOptions(workflows.TaskGroup, workflow.RegisterOptions{Name: spec.GroupWorkflowType})
	w.RegisterWorkflowWithOptions(workflows.Shared, workflow.RegisterOptions{Name: spec.SharedWorkflowType})
	w.RegisterWorkflowWithOptions(workflows.Fleet, workflow.RegisterOptions{Name: spec.FleetWorkflowType})
	w.RegisterWorkflowWithOptions(workflows.Barrier, workflow.RegisterOptions{Name: spec.BarrierWorkflowType})
	w.RegisterWorkflowWithOptions(queue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
	w.RegisterActivityWithOptions(s.server.KnownAttributes, activity.RegisterOptions{Name: spec.ActivityKnownAttributes})
}

// taskWorkers returns the workers for tasks' activities.
func (s *side) taskWorkers() (all polling) {
	anywhere := []string{spec.HostsQueue(s.Queue)}
	if s.member == nil {
		anywhere = append(anywhere, spec.HostQueue(s.Queue, s.Host))
	}
	for _, queue := range anywhere {
		w := s.worker(queue, reserveOptions())
		if s.member == nil {
			w.RegisterActivityWithOptions(s.host.Reserve, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Reserve)})
		}
		w.RegisterActivityWithOptions(s.host.Notify, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Notify)})
		s.registerChecks(w)
		all = append(all, w)
	}
	tasks := s.worker(spec.InstanceQueue(s.Queue, s.Host, s.supervisor.Instance()), s.taskOptions())
	s.registerTasks(tasks)
	return append(all, tasks)
}

// registerChecks registers the activities that any host may execute for a run, a sweep or a closure
// queue.
func (s *side) registerChecks(w worker.Worker) {
	w.RegisterActivityWithOptions(s.server.RunEnd, activity.RegisterOptions{Name: spec.ActivityRunEnd})
	w.RegisterActivityWithOptions(s.server.TrialsCheck, activity.RegisterOptions{Name: spec.ActivityTrialsCheck})
	w.RegisterActivityWithOptions(s.queues.ClosuresCheck, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
}

// registerTasks registers the activities that this host executes for its tasks.
func (s *side) registerTasks(w worker.Worker) {
	// A group's next generation is reserved on the previous generation's hosts.
	w.RegisterActivity(&struct{ hostapi.Host }{s.host})
	// Thousands of these calls may be waiting. Registered as a function, each needs only half the
	// stack.
	w.RegisterActivityWithOptions(s.host.RunTask, activity.RegisterOptions{
		Name: hostapi.Name(hostapi.Host.RunTask), DisableAlreadyRegisteredCheck: true,
	})
	closures := server.NewClosures(s.server, s.host.Brokers())
	w.RegisterActivityWithOptions(closures.RunClosures, activity.RegisterOptions{Name: closure.ActivityRunClosures})
	w.RegisterActivityWithOptions(s.queues.EndClosures, activity.RegisterOptions{Name: closure.ActivityEndClosures})
	w.RegisterActivityWithOptions(s.rounds.BarrierCheck, activity.RegisterOptions{Name: spec.ActivityBarrierCheck})
	if s.member != nil {
		w.RegisterActivityWithOptions(s.member.HostLease, activity.RegisterOptions{Name: spec.ActivityHostLease})
		w.RegisterActivityWithOptions(s.member.FleetCheck, activity.RegisterOptions{Name: spec.ActivityFleetCheck})
	}
}
