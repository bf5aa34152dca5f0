package lifecycle

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Status returns the run's and its tasks' states, without hosts and addresses, which the machine
// does not know. Tasks outside the generation are omitted.
func (m *Machine) Status() (spec.RunState, []spec.TaskStatus) {
	tasks := make([]spec.TaskStatus, 0, len(m.tasks))
	for _, t := range m.tasks {
		if t.absent {
			continue
		}
		s := spec.TaskStatus{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank, State: t.state()}
		if t.Exit != nil {
			exit := *t.Exit
			s.Exit = &exit
		}
		tasks = append(tasks, s)
	}
	return m.state(), tasks
}

func (m *Machine) state() spec.RunState {
	switch m.phase {
	case placing:
		if m.group.Generation > 0 && !m.requeue.Pending {
			return spec.RunRestarting
		}
		return spec.RunPlacing
	case regrouping:
		return spec.RunRestarting
	case running:
		if m.decided == byChief || m.decided == byTogether || m.decided == byFailure {
			return spec.RunStopping // during the grace of a stop
		}
		return spec.RunRunning
	case capturing, stopping:
		return spec.RunStopping
	case releasing:
		return spec.RunReleasing
	default:
		return spec.RunEnded
	}
}

// Ending reports whether the run is finishing, so that nothing more is launched.
func (m *Machine) Ending() bool { return m.decided != undecided || m.phase >= stopping }

// Placing reports whether the tasks are being placed.
func (m *Machine) Placing() bool { return m.phase == placing }

// Generation returns the number of the current generation, from 0.
func (a *account) Generation() int { return a.group.Generation }

// Done reports whether the run is over, because [Finish] was returned.
func (m *Machine) Done() bool { return m.phase == ended }
