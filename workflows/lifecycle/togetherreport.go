package lifecycle

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// stopReason writes who asked for the stop, and why.
func (m *Machine) stopReason(w *writer) {
	if s := m.Stopping(); s.Stop {
		text := shorten.Text(s.String(), maxWords/2)
		if s.By == "" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		w.line("%s.", strings.TrimSuffix(text, "."))
	}
}

// stragglers names the stragglers in the words of TensorFlow's Coordinator.
func (m *Machine) stragglers(w *writer) {
	w.line("%s", spec.StragglersText(m.together.stragglers))
}

// requestedCause writes the root cause of a run whose first failure is the error with
// which a task asked all tasks to stop.
func (m *Machine) requestedCause(w *writer, j judgement) {
	f := *j.root
	w.line("%s reported an error: %s", f.task.Name(), firstLine(f.exit.Message))
	how := ""
	switch t := f.task; {
	case t.stopped != "" && !t.ok() && !t.failedByItself():
		how = ", and had to be stopped"
	case t.exit != nil:
		how = ", and " + howEnded(failure{task: t, exit: *t.exit})
	}
	w.line("Root cause: %s asked all tasks to stop%s%s%s.", j.who(f), f.at(), how, m.afterRestarts(f))
	w.quote(f.exit.Message, true)
	if f.request.Reason != "" {
		w.line("Reason: %s", firstLine(f.request.Reason))
	}
	w.path("Error file", f.exit.ErrorFile)
	w.path("Logs", f.exit.LogDir)
}

// operatorsError writes the error with which an operator stopped the run.
func (m *Machine) operatorsError(w *writer, j judgement) {
	words := j.asked.String()
	if j.asked.Traceback != "" {
		words += "\n" + j.asked.Traceback
	}
	w.line("An operator asked all tasks to stop, because of an error: %s", firstLine(words))
	w.quote(words, true)
	if reason := m.together.request.Reason; reason != "" {
		w.line("Reason: %s", firstLine(reason))
	}
}
