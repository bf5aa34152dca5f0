package workers

import (
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// taskSlots is large enough not to starve short activities and Release. Each RunTask call holds a
// slot for as long as its process lives, and long-lasting checks hold a limited number of slots.
const taskSlots = 5000

// init names the build. By default the SDK hashes the whole executable when the first worker
// starts, which takes longer than the rest of a warm start.
func init() {
	worker.SetBinaryChecksum(buildName())
}

func buildName() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "clusterrun@" + s.Value
			}
		}
	}
	return "clusterrun@" + spec.Version
}

// A cached workflow's tasks are reserved for this side for cachedFor. If the side is killed,
// another side gets them only after that, and replays the workflow.
const cachedFor = 2 * time.Second

// stopTimeout is the maximum time that an exiting side waits for its activities.
const stopTimeout = time.Second

func (s *side) workflowOptions() worker.Options {
	return worker.Options{
		DisableRegistrationAliasing:  true,
		WorkflowTaskPollerBehavior:   pollers(2, 8),
		LocalActivityWorkerOnly:      true,
		StickyScheduleToStartTimeout: cachedFor,
		// A busy machine may need more than the SDK's default of a second to read a spec of a
		// mebibyte.
		DeadlockDetectionTimeout: 15 * time.Second,
	}
}

func reserveOptions() worker.Options {
	return worker.Options{
		DisableWorkflowWorker:      true,
		ActivityTaskPollerBehavior: pollers(1, 2),
		// By default the SDK holds heartbeats back for most of a heartbeat timeout, and
		// on a busy machine the rest of the timeout may be too short.
		MaxHeartbeatThrottleInterval: 10 * time.Second,
		// A check in progress can still report that another host should continue it.
		WorkerStopTimeout: stopTimeout,
	}
}

func (s *side) taskOptions() worker.Options {
	tasks := pollers(2, 8)
	if s.Owned {
		// These pollers serve a single run, and its tasks all arrive at the same time.
		tasks = pollers(8, 8)
	}
	return worker.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: taskSlots,
		ActivityTaskPollerBehavior:         tasks,
		// This interval is short, because servers that do not push cancellations report them in
		// answers to heartbeats.
		MaxHeartbeatThrottleInterval: time.Second,
		// The last answers may still be in flight when RunTask has returned.
		WorkerStopTimeout: stopTimeout,
	}
}

// localOptions returns the options of a local queue's only worker. In its answer to a workflow
// task, the server hands out the activities that the task schedules.
func (s *side) localOptions() worker.Options {
	o, eager := s.workflowOptions(), taskSlots
	tasks := s.taskOptions()
	o.LocalActivityWorkerOnly = false
	o.WorkflowTaskPollerBehavior = pollers(1, 8)
	o.MaxConcurrentActivityExecutionSize = tasks.MaxConcurrentActivityExecutionSize
	o.ActivityTaskPollerBehavior = pollers(1, 8)
	o.MaxHeartbeatThrottleInterval = tasks.MaxHeartbeatThrottleInterval
	o.WorkerStopTimeout = tasks.WorkerStopTimeout
	o.MaxEagerActivityReservationsPerWorkflowTask = &eager
	return o
}

// pollers returns options that use few pollers while the queue is idle, because a server limits a
// namespace's long polls, which a thousand hosts may share.
func pollers(initial, most int) worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: initial, MinimumNumberOfPollers: 1, MaximumNumberOfPollers: most,
	})
}
