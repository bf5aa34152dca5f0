package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Action is a step for the workflow to carry out.
type Action interface{ action() }

// Launch starts a task: it schedules a RunTask activity. Launch numbers the launches of
// the task in its generation, from 0.
type Launch struct {
	Task       spec.Task
	Generation int
	Launch     int
	// Added reports whether the task differs from the spec.
	Added bool
}

// RestartGroup places the group again, with fresh ports, once After has passed; [Begin] or
// [PlacementFailed] answers it. No activity of a task is open. First is the number of
// the first process of every task in the generation.
type RestartGroup struct {
	Generation, First int
	After             time.Duration
	// Requeue reports whether the run gives its room back first, and is pending again. The
	// limits on its time then count from the next [Begin].
	Requeue bool
}

// StopPlacing cancels the placement that [RestartGroup] began, which is no longer needed. The
// placement is answered all the same.
type StopPlacing struct{}

// Capture writes the stacks of the processes to files, like [CaptureStacks]. [Captured]
// answers it, soon and in any case.
type Capture struct {
	Tasks []string
	// For is the cause of the stop or restart that follows.
	For spec.Cause
	// Again is the time after it at which the hosts look once more.
	Again time.Duration
}

// Stop cancels the RunTask activities of these tasks, which means: ask the
// process to end, wait the grace, kill, and never start another. It is final.
type Stop struct {
	Tasks []string
	// Why is the cause recorded for the exits: collateral, operator or timeout. A stop
	// reaches the host as a cancellation, which carries no reason, so the host reports
	// "collateral" and the machine replaces that with Why.
	Why spec.Cause
}

// SealTasks makes the hosts restart nothing from now on.
type SealTasks struct{ Tasks []string }

// StopSilentTasks ends processes for their silence: they have failed.
type StopSilentTasks struct{ Tasks []string }

// Detached is an action whose outcome is not part of the answer to the request that caused it.
type Detached struct{ Action }

// NotifyStopping informs every host of the run whether its tasks are stopping together. While they are, a
// host restarts nothing.
type NotifyStopping struct{ Stopping spec.Stopping }

// Timer names a timer of a run.
type Timer string

// The values of [Timer].
const (
	TimerChiefGrace Timer = "chief-grace"
	TimerTimeout    Timer = "timeout"
	TimerMaxRunTime Timer = "max-run-time"
	// TimerTogether is the grace of a stop together.
	TimerTogether Timer = "stop-together"
	// TimerNotice is the deadline of a notice.
	TimerNotice Timer = "notice"
	// TimerErrorGrace is the time in which the task may end that made another lose its peer.
	TimerErrorGrace Timer = "error-grace"
)

// StartTimer asks for a [TimerFired] once After has passed.
type StartTimer struct {
	Timer Timer
	After time.Duration
}

// StopTimer cancels a timer.
type StopTimer struct{ Timer Timer }

// Release releases every host. No task is running then.
type Release struct{}

// Finish ends the run with this result, which may have left out tasks. Restarts counts the
// processes of all tasks after their first ones.
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
