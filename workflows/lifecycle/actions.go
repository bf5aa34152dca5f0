package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Action is what the workflow has to do next.
type Action interface{ action() }

// Launch starts a task: a new RunTask activity. Launch counts those of the
// task from 0, in each generation.
type Launch struct {
	Task       spec.Task
	Generation int
	Launch     int
	// Added: the task is not as the spec has it.
	Added bool
}

// Regroup places the group again, with fresh ports, after a while; [Begin] or
// [PlacementFailed] answers it. No activity of a task is open. First is the number
// of the first process of every task in the generation.
type Regroup struct {
	Generation, First int
	After             time.Duration
}

// StopPlacing ends a placement that [Regroup] began: it is not needed any more.
// The answer comes all the same.
type StopPlacing struct{}

// Capture writes down what the processes are doing, as [Control] with
// [ControlStacks], and answers with [Captured], soon and in any case.
type Capture struct{ Tasks []string }

// Stop cancels the RunTask activities of these tasks, which means: ask the
// process to end, wait the grace, kill, and never start another. It is final.
type Stop struct {
	Tasks []string
	// Why is the cause the exits get: collateral, operator or timeout. A host
	// learns of the stop as a cancellation, which has no words, and says
	// "collateral"; the machine puts Why in its place.
	Why spec.Cause
}

// ControlOp is what a [Control] action does on the hosts.
type ControlOp string

// The values of [ControlOp].
const (
	// ControlTerminate ends the processes; with auto_restart they start again.
	ControlTerminate ControlOp = "terminate"
	// ControlRestart ends the processes and starts them again, in any case.
	ControlRestart ControlOp = "restart"
	// ControlSignal sends a signal.
	ControlSignal ControlOp = "signal"
	// ControlStacks writes down what the processes are doing.
	ControlStacks ControlOp = "stacks"
	// ControlSeal forbids the hosts to start anything again.
	ControlSeal ControlOp = "seal"
	// ControlCheck looks whether a task could be started, before it is. The workflow
	// asks for it and not the machine.
	ControlCheck ControlOp = "check"
	// ControlSettle ends what a host may still have of a generation, and is done when
	// that is gone. The workflow asks for it and not the machine.
	ControlSettle ControlOp = "settle"
	// ControlTell is [Tell].
	ControlTell ControlOp = "tell"
)

// Control is something short to be done on the hosts of running tasks, which
// leaves their activities open.
type Control struct {
	Op     ControlOp
	Tasks  []string
	Signal string         // empty: the spec's stop signal
	Grace  *time.Duration // nil: the spec's
	// Aside: whoever asked for it is answered without waiting for it.
	Aside bool
}

// Tell has every host of the run learn how that stands: whether its tasks are
// stopping together. While they are a host starts nothing again.
type Tell struct{ Stopping spec.Stopping }

// Timer names a timer of a run.
type Timer string

// The values of [Timer].
const (
	TimerChiefGrace Timer = "chief-grace"
	TimerTimeout    Timer = "timeout"
	TimerMaxRunTime Timer = "max-run-time"
	// TimerTogether is the grace of a stop together.
	TimerTogether Timer = "stop-together"
)

// StartTimer asks for a [TimerFired] after a while.
type StartTimer struct {
	Timer Timer
	After time.Duration
}

// StopTimer takes a timer back.
type StopTimer struct{ Timer Timer }

// Release gives every host back. Nothing is running any more.
type Release struct{}

// Finish ends the run with this result.
type Finish struct{ Result spec.RunResult }

func (Launch) action()      {}
func (Regroup) action()     {}
func (StopPlacing) action() {}
func (Stop) action()        {}
func (Control) action()     {}
func (Tell) action()        {}
func (Capture) action()     {}
func (StartTimer) action()  {}
func (StopTimer) action()   {}
func (Release) action()     {}
func (Finish) action()      {}
