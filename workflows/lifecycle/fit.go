package lifecycle

import (
	"encoding/json"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/shorten"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxResult bounds the encoded result, in bytes. The server takes 2 MiB in one payload
// and terminates the run if it is larger; the rest is for the output that the workflow
// adds, and for the codec.
const maxResult = 1 << 20

// fit drops parts of a result until it fits in limit bytes, the least needed first. The
// root cause stays, in FirstFailure and Message.
func fit(r *spec.RunResult, limit int) {
	if size(r) <= limit {
		return
	}
	for _, most := range []int{400, 100} {
		cutMessages(r, most)
		if size(r) <= limit {
			return
		}
	}
	for i := range r.Tasks {
		r.Tasks[i].Exits = nil
	}
	if size(r) <= limit {
		return
	}
	// Values belong to the user: they are dropped last, and the message says so.
	var dropped []string
	for i := range r.Tasks {
		if r.Tasks[i].Value != nil {
			r.Tasks[i].Value = nil
			dropped = append(dropped, r.Tasks[i].Name)
		}
	}
	if len(dropped) > 0 {
		r.Message = strings.TrimPrefix(r.Message+"\nThe values returned are too large together for the result and were left out: "+list(dropped)+".", "\n")
	}
	if size(r) <= limit {
		return
	}
	cutMessages(r, 0)
	for i := range r.Tasks {
		if r.Tasks[i].Exit != nil {
			r.Tasks[i].Failure = nil // Exit says the same
		}
	}
}

func cutMessages(r *spec.RunResult, most int) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Exit != nil {
			t.Exit.Message = shorten.Text(t.Exit.Message, most)
		}
		if t.Failure != nil {
			t.Failure.Message = shorten.Text(t.Failure.Message, most)
		}
		for k := range t.Exits {
			t.Exits[k].Message = shorten.Text(t.Exits[k].Message, most)
		}
	}
}

func size(r *spec.RunResult) int { return sizeOf(r) }

// sizeOf returns the size of v as JSON, in bytes.
func sizeOf(v any) int {
	// The encoder caches, so workflowcheck doubts it; its output is deterministic.
	b, err := json.Marshal(v) //workflowcheck:ignore
	if err != nil {
		return 0 // encoding it for the server will fail with a better error
	}
	return len(b)
}
