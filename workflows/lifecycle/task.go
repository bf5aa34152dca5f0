package lifecycle

import (
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// task is one task and its latest launch.
type task struct {
	spec.Task
	TaskState
	// added reports whether the task differs from the spec: it is not in the spec, or an operator
	// started it with a different command.
	added bool
	// absent reports whether the generation excludes this task because it has too few hosts.
	absent bool
	// stopped is the Why of the Stop sent to the task, or empty if there was none.
	stopped spec.Cause
	// waiting reports whether the task was stopped while waiting for its restart, so that Exit
	// describes an earlier process.
	waiting bool
}

// TaskState is the part of a task's state that outlives a workflow execution.
type TaskState struct {
	// Of and Added are set only in a [State]. Of is the task's name, and Added the task if it
	// differs from the spec.
	Of    string     `json:"task"`
	Added *spec.Task `json:"added,omitempty"`

	Launch int  `json:"launch"`         // in this generation; -1 before the first
	Live   bool `json:"live,omitempty"` // launched, and not reported to have ended
	// Asked reports whether an operator asked the process to exit, and Ending whether that process
	// is the launch's last.
	Asked  bool `json:"asked,omitempty"`
	Ending bool `json:"ending,omitempty"`
	// Exit is the launch's exit. It stays nil if the stop found no process.
	Exit    *spec.Exit `json:"exit,omitempty"`
	Arrived int        `json:"arrived,omitempty"` // the exit's position among all exits, from 1
	// Host is the host on which the launch ended.
	Host string `json:"host,omitempty"`
	// First is the launch's first process number. Earlier holds the exits of earlier launches in
	// all generations.
	First   int         `json:"first,omitempty"`
	Earlier []spec.Exit `json:"earlier,omitempty"`
	// Unknown lists the processes of earlier launches that only their hosts can report on.
	Unknown []unknownEnd `json:"unknown_ends,omitempty"`
}

// unknownEnd is a process that only its host can report on.
type unknownEnd struct {
	Number int    `json:"number"`
	Host   string `json:"host"`
}

// next returns the number that follows its last process's.
func (t *task) next() int {
	switch {
	case t.Exit != nil:
		return max(t.First, t.Exit.Restart) + 1
	case t.Launch >= 0:
		return t.First + 1 // even if the launch's process was not reported
	}
	return t.First
}

// resetEnd clears the last launch's exit and its cause.
func (t *task) resetEnd() {
	t.Asked, t.Ending, t.stopped, t.Exit, t.Arrived = false, false, "", nil, 0
}

// exitOf returns the exit to record for a finished launch.
func (t *task) exitOf(e TaskEnded) *spec.Exit {
	switch {
	case e.Exit != nil:
		exit := t.relabel(*e.Exit)
		exit.Restart = max(exit.Restart, t.First) // unknown for a host that was given up
		return &exit
	case t.stopped == "":
		// The task was not stopped, and its exit is unknown.
		return &spec.Exit{
			Restart: t.First, ExitCode: -1, Cause: spec.CauseHostLost,
			Message: "its activity ended without reporting on the process",
		}
	case e.GivenUp:
		return lostExit(t.First)
	default:
		return nil
	}
}

// lostExit returns the exit to record for a process if the only host that could report on it is
// lost.
func lostExit(number int) *spec.Exit {
	return &spec.Exit{
		Restart: number, ExitCode: -1, Cause: spec.CauseHostLost,
		Message: "its host was lost before reporting how it ended",
	}
}

// relabel sets an exit's cause to the stop that caused it. The host receives a stop as a
// cancellation, which carries no reason, so it can only report "collateral". If the machine sent no
// stop, the process was lost with its host.
func (t *task) relabel(e spec.Exit) spec.Exit {
	switch {
	case e.Cause != spec.CauseCollateral:
	case t.stopped != "":
		e.Cause = t.stopped
	default:
		e.Cause = spec.CauseHostLost
		e.Message = strings.TrimSpace("its host stopped it although this run did not request that\n" + e.Message)
	}
	return e
}

func (e HostGivenUp) apply(m *Machine) {
	for _, t := range m.tasks {
		t.giveUp([]string{e.Host})
	}
}

// giveUp gives an exit to each earlier process that only one of the given hosts could report on.
func (t *task) giveUp(hosts []string) {
	earlier, unknown := slices.Clone(t.Earlier), []unknownEnd(nil)
	for _, u := range t.Unknown {
		if slices.Contains(hosts, u.Host) {
			earlier = append(earlier, *lostExit(u.Number))
		} else {
			unknown = append(unknown, u)
		}
	}
	slices.SortStableFunc(earlier, func(a, b spec.Exit) int { return a.Restart - b.Restart })
	t.Earlier, t.Unknown = earlier[max(0, len(earlier)-maxExits):], unknown
}

// keepEnd keeps the last launch's exit before another launch.
func (t *task) keepEnd() {
	t.noteUnknown()
	if t.Exit != nil {
		t.Earlier = newest(t.Earlier, *t.Exit)
	}
}

// noteUnknown adds those processes of the last launch that only its host can report on: the ones
// that it restarted and, without an exit, the first.
func (t *task) noteUnknown() {
	last := t.First
	switch {
	case t.Exit != nil:
		last = t.Exit.Restart
	case t.Launch >= 0:
		last++
	}
	for n := max(t.First, last-maxExits); n < last; n++ {
		t.Unknown = newest(t.Unknown, unknownEnd{n, t.Host})
	}
}

// newest returns the last maxExits of kept and e. It copies the slice, because earlier answers
// still use kept.
func newest[T any](kept []T, e T) []T {
	kept = slices.Concat(kept, []T{e})
	return kept[max(0, len(kept)-maxExits):]
}

func (t *task) endedBy(c spec.Cause) bool { return t.Exit != nil && t.Exit.Cause == c }

func (t *task) failedByItself() bool { return t.Exit != nil && t.Exit.Cause.ByItself() }

func (t *task) state() spec.TaskState {
	switch {
	case t.Launch < 0:
		return spec.TaskPending
	case !t.Live:
		return spec.TaskEnded
	case t.Ending || t.stopped != "":
		return spec.TaskStopping
	default:
		return spec.TaskRunning
	}
}
