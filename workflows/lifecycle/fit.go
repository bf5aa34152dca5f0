package lifecycle

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxResult bounds the encoded result. The server takes 2 MiB in one payload and
// kills the run over more, so the result leaves room for the output, which the
// workflow adds, and for the codec.
const maxResult = 1 << 20

// fit makes a result small enough to be handed over, the least needed first.
// The root cause is in FirstFailure and in Message, which stay.
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
	// Values are the user's, so they go last and never silently.
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
			r.Tasks[i].Failure = nil // says nothing that Exit does not
		}
	}
}

func cutMessages(r *spec.RunResult, most int) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Exit != nil {
			t.Exit.Message = cut(t.Exit.Message, most)
		}
		if t.Failure != nil {
			t.Failure.Message = cut(t.Failure.Message, most)
		}
		for k := range t.Exits {
			t.Exits[k].Message = cut(t.Exits[k].Message, most)
		}
	}
}

// cut shortens a text to so many bytes, at the border of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	if most < len(mark) {
		return ""
	}
	most -= len(mark)
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + mark
}

func size(r *spec.RunResult) int { return sizeOf(r) }

// sizeOf is the size of a value as JSON.
func sizeOf(v any) int {
	// The encoder allocates and caches, which the check cannot see through; what
	// it writes is the same every time.
	b, err := json.Marshal(v) //workflowcheck:ignore
	if err != nil {
		return 0 // whoever hands it over will say what is wrong with it
	}
	return len(b)
}
