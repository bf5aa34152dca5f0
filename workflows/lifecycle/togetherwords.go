package lifecycle

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stopReason says who asked for the stop, and why.
func (m *Machine) stopReason(w *writer) {
	if s := m.Stopping(); s.Stop {
		text := cut(s.String(), maxWords/2)
		if s.By == "" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		w.line("%s.", strings.TrimSuffix(text, "."))
	}
}

// stragglers are named in the words of the seed (SEED-61).
func (m *Machine) stragglers(w *writer) {
	w.line("%s", spec.StragglersText(m.together.stragglers))
}

// wishedCause is the root cause of a run whose first failure was the error with
// which a task asked all to stop.
func (m *Machine) wishedCause(w *writer, j judgement) {
	f := *j.root
	w.line("%s reported an error: %s", f.task.Name(), firstLine(f.exit.Message))
	how := ""
	switch t := f.task; {
	case t.stopped != "" && !t.ok() && !t.endedBy(spec.CauseOrigin):
		how = ", and had to be stopped"
	case t.exit != nil:
		how = ", and " + howEnded(failure{task: t, exit: *t.exit})
	}
	w.line("Root cause: %s asked all tasks to stop%s%s%s.", j.who(f), f.at(), how, m.afterRestarts(f))
	w.quote(f.exit.Message, true)
	if f.wish.Reason != "" {
		w.line("Reason: %s", firstLine(f.wish.Reason))
	}
	w.path("Error file", f.exit.ErrorFile)
	w.path("Logs", f.exit.LogDir)
}

// operatorsError is that of a run that an operator stopped with one.
func (m *Machine) operatorsError(w *writer, j judgement) {
	words := j.asked.String()
	if j.asked.Traceback != "" {
		words += "\n" + j.asked.Traceback
	}
	w.line("An operator asked all tasks to stop, because of an error: %s", firstLine(words))
	w.quote(words, true)
	if reason := m.together.wish.Reason; reason != "" {
		w.line("Reason: %s", firstLine(reason))
	}
}
