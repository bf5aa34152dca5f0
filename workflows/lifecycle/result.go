package lifecycle

import (
	"bytes"
	"encoding/json"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxExits bounds the exits listed for one task.
const maxExits = 10

// result is the account of the whole run. Released brings what the machine was
// not told: processes that were started again, values, hosts.
func (m *Machine) result(e Released) spec.RunResult {
	for _, t := range m.tasks {
		t.recover(e.Exits[t.Name()])
	}
	j := m.judge(e)
	r := spec.RunResult{
		Verdict: j.verdict, ErrorType: j.errorType, ExitCode: j.exitCode,
		Tasks: make([]spec.TaskResult, 0, len(m.tasks)), Generation: m.group.generation,
	}
	if j.root != nil {
		r.FirstFailure = j.root.describe()
	}
	if s := m.Stopping(); s.Stop {
		r.Stopping, r.Stragglers = &s, m.together.stragglers
	}
	failed := make(map[string]*failure, len(j.failures))
	for i := range j.failures {
		failed[j.failures[i].task.Name()] = &j.failures[i]
	}
	var odd []string
	for _, t := range m.tasks {
		result := t.result(e)
		result.StacksFile = m.stacks[t.Name()]
		if f := failed[t.Name()]; f != nil {
			result.Failure = f.describe()
		}
		switch value := bytes.TrimSpace(e.Values[t.Name()]); {
		case len(value) == 0, bytes.Equal(value, []byte("null")): // no value (SEED-23)
		case !json.Valid(value):
			odd = append(odd, t.Name()) // it would spoil the encoding of the whole result
		default:
			result.Value = value
		}
		r.Tasks = append(r.Tasks, result)
	}
	r.Message = m.message(j, e, odd)
	fit(&r, maxResult)
	return r
}

// recover looks up how a task ended whose activity was closed by a stop before
// it could say: while it waited to start its next process, that is the end of
// the one before. If that was a failure it has become final (MPR-20).
func (t *task) recover(exits []spec.Exit) {
	if t.exit != nil || t.launch < 0 || len(exits) == 0 {
		return
	}
	if last := exits[len(exits)-1]; last.Restart >= t.first {
		exit := t.relabel(last)
		t.exit = &exit
	}
}

func (t *task) result(e Released) spec.TaskResult {
	r := spec.TaskResult{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank, Host: e.Hosts[t.Name()]}
	if t.exit != nil {
		exit := *t.exit
		r.Exit = &exit
	}
	exits := t.exits(e.Exits[t.Name()])
	for _, exit := range exits {
		r.Restarts = max(r.Restarts, exit.Restart)
	}
	r.Restarts = max(r.Restarts, len(exits)-1)
	if r.Exit == nil && t.launch < 0 && len(exits) > 0 {
		// Its generation was not started any more; this is how it was before.
		exit := exits[len(exits)-1]
		r.Exit = &exit
	}
	if len(exits) > 1 {
		r.Exits = exits[max(0, len(exits)-maxExits):]
	}
	return r
}

// exits are all known of the task, the oldest first. Where the host could not be
// asked they are those that its activities brought.
func (t *task) exits(released []spec.Exit) []spec.Exit {
	all := make([]spec.Exit, 0, len(released)+len(t.earlier)+1)
	known := t.earlier
	for _, exit := range released {
		// What we know is as good, and says why we stopped it; and it has those
		// of hosts that the run has left.
		for len(known) > 0 && known[0].Restart <= exit.Restart {
			all, known = append(all, known[0]), known[1:]
		}
		switch {
		case len(all) > 0 && all[len(all)-1].Restart == exit.Restart:
			continue
		case exit.Restart >= t.first:
			exit = t.relabel(exit)
		}
		all = append(all, exit)
	}
	all = append(all, known...)
	if t.exit != nil && (len(all) == 0 || all[len(all)-1].Restart < t.exit.Restart) {
		all = append(all, *t.exit)
	}
	return all
}
