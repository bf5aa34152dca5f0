package lifecycle

import (
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxResult limits the encoded result, in bytes. The server accepts at most 2 MiB in one payload,
// and terminates a run that sends more. The rest is for the output that the workflow adds, and for
// the codec.
const maxResult = 1 << 20

// fit drops parts of a result, the least important first, until it fits in limit bytes. The root
// cause always remains in FirstFailure.
func fit(r *spec.RunResult, limit int) {
	fits := shorten.ToFit(r, limit,
		func() { cutMessages(r, 400) },
		func() { cutMessages(r, 100) },
		func() {
			for i := range r.Tasks {
				r.Tasks[i].Exits = nil
			}
		},
		func() {
			// Values belong to the user, so they are dropped only after earlier exits and long
			// messages, and the result names them.
			for i := range r.Tasks {
				if t := &r.Tasks[i]; t.Value != nil {
					t.Value = nil
					r.WithoutValue(t.Name)
				}
			}
		},
		func() { cutMessages(r, 0) },
		func() {
			for i := range r.Tasks {
				t := &r.Tasks[i]
				t.StacksFile, t.Exit = "", t.Exit.Bare()
			}
		},
	)
	if !fits {
		leaveOut(r, shorten.Size(r)-limit)
	}
}

// leaveOut drops tasks from a result until the given number of bytes is saved, and records how many
// it dropped. It drops completed tasks first, and later tasks before earlier ones.
func leaveOut(r *spec.RunResult, bytes int) {
	out := make([]bool, len(r.Tasks))
	dropped := 0
	for _, completed := range []bool{true, false} {
		for i := len(r.Tasks) - 1; i >= 0 && bytes > 0; i-- {
			if t := &r.Tasks[i]; !out[i] && completed == (t.Exit != nil && t.Exit.Cause == spec.CauseCompleted) {
				bytes -= shorten.Size(t) + len(",")
				out[i] = true
				dropped++
			}
		}
	}
	if dropped == 0 {
		return
	}
	var kept []spec.TaskResult
	for i, t := range r.Tasks {
		if !out[i] {
			kept = append(kept, t)
		}
	}
	r.Tasks = kept
	if r.LeftOut == nil {
		r.LeftOut = &spec.LeftOut{}
	}
	r.LeftOut.Tasks = dropped
}

func cutMessages(r *spec.RunResult, most int) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Exit != nil {
			t.Exit.Steps, t.Exit.Metrics = nil, nil // the result already names the slow tasks
			t.Exit.Message = shorten.Text(t.Exit.Message, most)
			t.Exit.Printed, t.Exit.GPUError = nil, "" // the first failure includes them
		}
		for k := range t.Exits {
			t.Exits[k].Printed, t.Exits[k].GPUError, t.Exits[k].Metrics = nil, "", nil
			t.Exits[k].Message = shorten.Text(t.Exits[k].Message, most)
		}
	}
}
