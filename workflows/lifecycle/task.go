package lifecycle

import (
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// task is one task and its latest launch.
type task struct {
	spec.Task
	launch int  // of this generation; -1 before the first
	live   bool // launched, and its end not yet reported
	// added reports whether the task differs from the spec: it is not in it, or an
	// operator started it with another command.
	added bool
	// absent reports whether this generation has no such task: its hosts have room for fewer.
	absent bool
	// asked reports whether an operator asked the process to end.
	asked bool
	// ending reports whether that process is the last of the launch.
	ending bool
	// stopped is the Why of the Stop sent to the task, or empty if there was none.
	stopped spec.Cause
	// exit is the exit of the launch. It stays nil if the stop found no process.
	exit *spec.Exit
	// waiting reports whether it was stopped while it waited for its restart, so that exit is
	// the exit of an earlier process.
	waiting bool
	arrived int // the position of that end among all ends, from 1
	// host is the host on which the launch ended.
	host string
	// first is the number of the launch's first process. earlier holds the exits of
	// the launches before it, of all generations.
	first   int
	earlier []spec.Exit
	// unknown is the number of the first process of the last generation, if no end of that is
	// known. It is nil otherwise, and while the generation after it runs.
	unknown *int
}

// next returns the number after its last process's.
func (t *task) next() int {
	switch {
	case t.exit != nil:
		return max(t.first, t.exit.Restart) + 1
	case t.launch >= 0:
		return t.first + 1 // though nothing is known of its process
	}
	return t.first
}

// resetEnd clears the end of the last launch and its cause.
func (t *task) resetEnd() {
	t.asked, t.ending, t.stopped, t.exit, t.arrived = false, false, "", nil, 0
}

// exitOf returns the exit to record for the end of a launch.
func (t *task) exitOf(e TaskEnded) *spec.Exit {
	switch {
	case e.Exit != nil:
		exit := t.relabel(*e.Exit)
		exit.Restart = max(exit.Restart, t.first) // not known of a host that is given up
		return &exit
	case t.stopped == "":
		// The task was not stopped, and its end is unknown.
		return &spec.Exit{
			Restart: t.first, ExitCode: -1, Cause: spec.CauseHostLost,
			Message: "its activity ended without a report on the process",
		}
	case e.GivenUp:
		return lostExit(t.first)
	default:
		return nil
	}
}

// lostExit returns the exit of the process with that number that was stopped on a lost host, which
// alone knows how it ended.
func lostExit(number int) *spec.Exit {
	return &spec.Exit{
		Restart: number, ExitCode: -1, Cause: spec.CauseHostLost,
		Message: "it was being stopped when its host was lost",
	}
}

// relabel gives an exit that a stop caused the cause of that stop. A stop reaches the
// host as a cancellation, which carries no reason, so the host can only report
// "collateral". If the machine sent no stop, the process was lost with its host.
func (t *task) relabel(e spec.Exit) spec.Exit {
	switch {
	case e.Cause != spec.CauseCollateral:
	case t.stopped != "":
		e.Cause = t.stopped
	default:
		e.Cause = spec.CauseHostLost
		e.Message = strings.TrimSpace("its host stopped it, although this run did not request that\n" + e.Message)
	}
	return e
}

// apply records the tasks as lost: only their host knows how they ended.
func (e HostGivenUp) apply(m *Machine) {
	for _, name := range e.Tasks {
		if t := m.named[name]; t != nil && t.unknown != nil {
			t.keep(*lostExit(*t.unknown))
			t.unknown = nil
		}
	}
}

// keep adds an exit of a generation that has ended.
func (t *task) keep(e spec.Exit) {
	kept := slices.Concat(t.earlier, []spec.Exit{e}) // earlier answers have the former slice
	t.earlier = kept[max(0, len(kept)-maxExits):]
}

func (t *task) endedBy(c spec.Cause) bool { return t.exit != nil && t.exit.Cause == c }

func (t *task) failedByItself() bool { return t.exit != nil && t.exit.Cause.ByItself() }

func (t *task) state() spec.TaskState {
	switch {
	case t.launch < 0:
		return spec.TaskPending
	case !t.live:
		return spec.TaskEnded
	case t.ending || t.stopped != "":
		return spec.TaskStopping
	default:
		return spec.TaskRunning
	}
}
