package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Action is a step for the workflow to carry out.
type Action interface{ action() }

// Launch starts a task: it schedules a RunTask activity. The field Launch numbers the task's
// launches in its generation, from 0.
type Launch struct {
	Task       spec.Task
	Generation int
	Launch     int
	// Added reports whether the task differs from the spec.
	Added bool
}

// RestartGroup places the group again, with fresh ports, once After has passed. [Begin] or
// [PlacementFailed] answers it. No task's activity is open at that point. First is the number of
// every task's first process in the new generation.
type RestartGroup struct {
	Generation, First int
	After             time.Duration
	// Requeue reports whether the run first releases its hosts and becomes pending again. Its time
	// limits then count from the next [Begin].
	Requeue bool
}

// StopPlacing cancels the placement that [RestartGroup] started, which is no longer needed. [Begin]
// or [PlacementFailed] still follows.
type StopPlacing struct{}

// Capture writes the processes' stacks to files, like [CaptureStacks]. [Captured] always answers
// it soon.
type Capture struct {
	Tasks []string
	// For is the cause for the stop or restart that follows.
	For spec.Cause
	// Again is the delay before the hosts repeat the capture.
	Again time.Duration
}

// Stop cancels the RunTask activities of these tasks: each process is asked to exit, killed after
// the grace, and never replaced. A Stop is final.
type Stop struct {
	Tasks []string
	// Why is the cause recorded for the exits: collateral, operator or timeout. The host receives
	// a stop as a cancellation, which carries no reason, so it reports "collateral" and the
	// machine replaces that with Why.
	Why spec.Cause
}

// SealTasks makes the hosts stop restarting.
type SealTasks struct{ Tasks []string }

// StopSilentTasks stops silent processes, which have failed.
type StopSilentTasks struct{ Tasks []string }

// Detached is an action with an outcome that is not part of the answer to the request.
type Detached struct{ Action }

// NotifyStopping informs all hosts of the run whether its tasks are stopping together. During a
// stop, hosts do not restart anything.
type NotifyStopping struct{ Stopping spec.Stopping }

// Timer names a timer of a run.
type Timer string

// The values of [Timer].
const (
	TimerChiefGrace Timer = "chief-grace"
	TimerTimeout    Timer = "timeout"
	TimerMaxRunTime Timer = "max-run-time"
	// TimerTogether is the grace of a request to stop together.
	TimerTogether Timer = "stop-together"
	// TimerNotice is a notice's deadline.
	TimerNotice Timer = "notice"
	// TimerErrorGrace limits the wait for the end of the task that made its peer fail.
	TimerErrorGrace Timer = "error-grace"
)

// StartTimer requests a [TimerFired] once After has passed.
type StartTimer struct {
	Timer Timer
	After time.Duration
}

// StopTimer cancels a timer.
type StopTimer struct{ Timer Timer }

// Release releases every host. No tasks are running.
type Release struct{}

// Finish finishes the run with this result, which may omit tasks. Restarts is the number of all
// processes except each task's first.
type Finish struct {
	Result   spec.RunResult
	Restarts int
}

func (Launch) action()          {}
func (RestartGroup) action()    {}
func (StopPlacing) action()     {}
func (Stop) action()            {}
func (SealTasks) action()       {}
func (StopSilentTasks) action() {}
func (NotifyStopping) action()  {}
func (Capture) action()         {}
func (StartTimer) action()      {}
func (StopTimer) action()       {}
func (Release) action()         {}
func (Finish) action()          {}
