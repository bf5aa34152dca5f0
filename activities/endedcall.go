package activities

import (
	"slices"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// endedCall is a call in the middle of which a process exited with 0.
type endedCall struct {
	Generation int    `json:"generation,omitempty"`
	Task       string `json:"task"`
	Process    int    `json:"process"`
	Call       string `json:"call"`
}

// inCall returns the call in the middle of which a process exited with 0; empty: none. p may
// be nil.
func (p *plan) inCall(q supervisor.Process) string {
	if p == nil {
		return ""
	}
	for _, c := range p.Calls {
		if c.Generation == q.Key.Generation && c.Task == q.Key.Task && c.Process == q.Number {
			return c.Call
		}
	}
	return ""
}

// callsOf returns the calls without those of the task's processes that the supervisor has
// omitted: a task may be started again for as long as its run lives.
func (p *plan) callsOf(processes []supervisor.Process) []endedCall {
	last := processes[len(processes)-1]
	return slices.DeleteFunc(slices.Clone(p.Calls), func(c endedCall) bool {
		return c.Generation == last.Key.Generation && c.Task == last.Key.Task &&
			!slices.ContainsFunc(processes, func(q supervisor.Process) bool { return q.Number == c.Process })
	})
}

// noteCall tells the broker that the last process has ended, and keeps the call that it was in
// where its exit code does not say that it failed: this exit is judged again, maybe by
// another host worker, and counts for all restarts that follow.
//
// Where the process has asked an earlier host worker last, only that one knew whether it
// was in a call. Then one that has not left counts as being in one: its task is started
// again for nothing at worst, while a task that is not started again is waited for without
// end. Nobody waits where all tasks stop together.
func (l *lease) noteCall(processes []supervisor.Process) error {
	q := processes[len(processes)-1]
	call, life := l.brokers.processEnded(l.plan, l.key.Task)
	p, err := l.plans.get(l.key.Run)
	if err != nil {
		return err
	}
	asked := p.Serving[l.key.Task]
	if call == "" && asked != "" && asked != life && !p.sealed() {
		call = spec.UnknownCall
	}
	if q.Exit.Reason != supervisor.ReasonNone || causeOf(q.Exit, l.Owned, "") != spec.CauseCompleted || p.inCall(q) != "" {
		call = ""
	}
	if call != "" || asked != "" {
		p, err = l.plans.update(l.key.Run, func(p *plan) (*plan, error) {
			if p == nil {
				return nil, errNoPlan
			}
			if call != "" {
				p.Calls = append(p.callsOf(processes), endedCall{q.Key.Generation, q.Key.Task, q.Number, call})
			}
			p.serves(l.key.Task, "")
			return p, nil
		})
		if err != nil {
			return err
		}
	}
	l.plan.Calls = p.Calls
	return nil
}
