package rules

import (
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// bounded returns an error whose texts are cut to their limits.
func bounded(e *closure.Error) *closure.Error {
	b := *e
	b.Kind = shorten.Head(b.Kind, closure.MaxFunctionName)
	b.Task = shorten.Head(b.Task, closure.MaxFunctionName)
	b.Message = shorten.Head(b.Message, closure.MaxError)
	b.Traceback = shorten.Traceback(b.Traceback, closure.MaxTraceback)
	return &b
}
