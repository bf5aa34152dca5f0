package closures

import (
	"strings"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// bounded is an error that fits into the queue's state, whatever its host said.
func bounded(e *spec.ClosureError) *spec.ClosureError {
	b := *e
	b.Kind = cutText(b.Kind, spec.MaxFunctionName)
	b.Task = cutText(b.Task, spec.MaxFunctionName)
	b.Message = cutText(b.Message, spec.MaxClosureError)
	if n := len(b.Traceback); n > spec.MaxClosureTraceback {
		b.Traceback = b.Traceback[n-spec.MaxClosureTraceback:]
		for len(b.Traceback) > 0 && !utf8.RuneStart(b.Traceback[0]) {
			b.Traceback = b.Traceback[1:]
		}
	}
	return &b
}

// cutText keeps the first bytes of a text, whole characters of it.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most])
}
