package taskservices

import (
	"slices"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// EndedCall is a call during which a process exited with code 0.
type EndedCall struct {
	Generation int    `json:"generation,omitempty"`
	Task       string `json:"task"`
	Process    int    `json:"process"`
	Call       string `json:"call"`
}

// InCall returns the call during which a process exited with code 0, or an empty string.
func (n *Notes) InCall(q supervisor.Process) string {
	for _, c := range n.Calls {
		if c.Generation == q.Key.Generation && c.Task == q.Key.Task && c.Process == q.Number {
			return c.Call
		}
	}
	return ""
}

// callsOf returns the calls except of processes that the supervisor has dropped, because a task
// may restart any number of times.
func (n *Notes) callsOf(processes []supervisor.Process) []EndedCall {
	last := processes[len(processes)-1]
	return slices.DeleteFunc(slices.Clone(n.Calls), func(c EndedCall) bool {
		return c.Generation == last.Key.Generation && c.Task == last.Key.Task &&
			!slices.ContainsFunc(processes, func(q supervisor.Process) bool { return q.Number == c.Process })
	})
}

// ProcessEnded tells the broker that a task's last process has exited. If that process would count
// as completed, ProcessEnded records the call it was in, because the exit is judged again, maybe
// by another host worker, and counts for all later restarts. It returns all such calls of the run.
//
// If the process last asked an earlier host worker, only that host worker could tell whether the
// process was in a call. A process that did not leave in order then counts as in a call. At worst
// its task restarts needlessly, whereas the run would wait forever for a task that does not
// restart. While all tasks stop together, nothing waits for the task.
func (s *Services) ProcessEnded(processes []supervisor.Process, completed bool) ([]EndedCall, error) {
	q := processes[len(processes)-1]
	run, err := s.Plans.Run(q.Key.Run)
	if err != nil {
		return nil, err
	}
	call, life := s.brokers.processEnded(run, q.Key.Task)
	asked := run.Serving[q.Key.Task]
	if call == "" && asked != "" && asked != life && !run.Sealed {
		call = spec.UnknownCall
	}
	if !completed || run.InCall(q) != "" {
		call = ""
	}
	if call != "" || asked != "" {
		run, err = s.Plans.Note(q.Key.Run, func(n *Notes) {
			if call != "" {
				n.Calls = append(n.callsOf(processes), EndedCall{q.Key.Generation, q.Key.Task, q.Number, call})
			}
			n.left(q.Key.Task)
		})
	}
	return run.Calls, err
}
