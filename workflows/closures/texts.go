package closures

import (
	"strings"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// bounded returns an error that fits into the queue's state, whatever its host said.
func bounded(e *closure.Error) *closure.Error {
	b := *e
	b.Kind = cutText(b.Kind, closure.MaxFunctionName)
	b.Task = cutText(b.Task, closure.MaxFunctionName)
	b.Message = cutText(b.Message, closure.MaxError)
	if n := len(b.Traceback); n > closure.MaxTraceback {
		b.Traceback = b.Traceback[n-closure.MaxTraceback:]
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
