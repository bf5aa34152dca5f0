package lifecycle

import "github.com/clusterrun/clusterrun/workflows/text/plural"

// traces names what torch's Flight Recorder wrote of the last collectives of tasks, the root
// cause's first.
func (m *Machine) traces(w *writer, j judgement) {
	var late []*task
	for _, t := range m.tasks {
		switch {
		case t.exit == nil || t.exit.TraceFile == "":
		case j.root != nil && j.root.task == t:
			late = append([]*task{t}, late...)
		default:
			late = append(late, t)
		}
	}
	for _, t := range late[:min(len(late), maxLogs)] {
		w.path("Flight Recorder of "+t.Name(), t.exit.TraceFile)
	}
	if more := len(late) - maxLogs; more > 0 {
		w.line("and %s more of the Flight Recorder, each beside the logs of its task.", plural.Of(more, "file", "files"))
	}
}
