package coordinate

import (
	"encoding/json"
	"errors"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func outcomeOf(value json.RawMessage, err error) Outcome {
	if err == nil {
		return Outcome{Value: value}
	}
	return Outcome{Error: errorOf(err), Lost: lost(err)}
}

// lost reports whether the outcome of the call is not known. What the queue does not take
// was not called.
func lost(err error) bool {
	var (
		e       *closure.Error
		refused *closure.RefusedError
	)
	switch {
	case errors.As(err, &refused):
		return false
	case !errors.As(err, &e):
		return true
	}
	switch e.Kind {
	case closure.ErrQuarantined, closure.ErrLost, closure.ErrNotFound:
		return e.Traceback == ""
	case closure.ErrCancelled:
		return e.Traceback == "" && e.Task == ""
	}
	return false
}

func errorOf(err error) *closure.Error {
	var (
		e       *closure.Error
		refused *closure.RefusedError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, closurequeue.ErrRunEnded):
		return &closure.Error{Kind: ErrRunEnded, Message: closurequeue.ErrRunEnded.Error()}
	case errors.As(err, &e):
		return e
	case errors.As(err, &refused):
		return &closure.Error{Kind: ErrRefused, Message: refused.Error()}
	}
	return &closure.Error{Kind: ErrCoordinator, Message: err.Error()}
}
