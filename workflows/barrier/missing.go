package barrier

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// JudgeMissing returns those missing tasks that, according to the run, will not return. A task with
// a closed activity has ended for good even if an operator may start it again later.
func JudgeMissing(status spec.Status, in spec.BarrierCheckInput) spec.BarrierCheckOutput {
	var out spec.BarrierCheckOutput
	if status.Generation != in.Run.Generation || status.State == spec.RunRestarting {
		out.RunEnded = in.Run.Over()
		return out
	}
	if status.State == spec.RunEnded || status.State == spec.RunReleasing {
		out.RunEnded = fmt.Sprintf("run %s is ending", in.Run.WorkflowID)
		return out
	}
	tasks := map[string]spec.TaskStatus{}
	for _, t := range status.Tasks {
		tasks[t.Name] = t
	}
	for _, name := range in.Missing {
		t, known := tasks[name]
		switch {
		case !known:
			out.Ended = append(out.Ended, spec.BarrierEndedTask{Task: name, How: "the run has no such task"})
		case t.State == spec.TaskEnded:
			out.Ended = append(out.Ended, spec.BarrierEndedTask{Task: name, How: wordsOfExit(t.Exit)})
		}
	}
	return out
}

func wordsOfExit(e *spec.Exit) string {
	switch {
	case e == nil:
		return ""
	case e.Signal != "":
		return e.Signal
	default:
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
}
