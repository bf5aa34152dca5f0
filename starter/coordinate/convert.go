package coordinate

import (
	"encoding/json"
	"errors"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// call is a call as coordinators take it.
func (c Call) call() clustercoordinator.Call {
	out := clustercoordinator.Call{Function: c.Function, Options: c.Options}
	for _, a := range c.Args {
		out.Args = append(out.Args, a)
	}
	for name, a := range c.Kwargs {
		if out.Kwargs == nil {
			out.Kwargs = map[string]any{}
		}
		out.Kwargs[name] = a
	}
	return out
}

// check refuses what the queue would refuse, together with all that goes with it.
func (c Call) check() error {
	closure := spec.Closure{Function: c.Function, Options: c.Options}
	var err error
	if closure.Args, err = json.Marshal(c.Args); err != nil {
		return err
	}
	if closure.Kwargs, err = json.Marshal(c.Kwargs); err != nil {
		return err
	}
	if len(c.Args) == 0 {
		closure.Args = nil
	}
	if len(c.Kwargs) == 0 {
		closure.Kwargs = nil
	}
	return spec.ScheduleRequest{Client: "check", Batch: 1, Closures: []spec.Closure{closure}}.Validate()
}

func outcomeOf(value json.RawMessage, err error) Outcome {
	if err == nil {
		return Outcome{Value: value}
	}
	return Outcome{Error: errorOf(err), Lost: lost(err)}
}

// lost says that nobody knows what has come of the call. What the queue does not take
// was not called.
func lost(err error) bool {
	var (
		e       *spec.ClosureError
		refused *closurequeue.RefusedError
	)
	switch {
	case errors.As(err, &refused):
		return false
	case !errors.As(err, &e):
		return true
	}
	switch e.Kind {
	case spec.ErrClosureQuarantined, spec.ErrClosureLost, spec.ErrClosureNotFound:
		return e.Traceback == ""
	case spec.ErrClosureCancelled:
		return e.Traceback == "" && e.Task == ""
	}
	return false
}

func errorOf(err error) *spec.ClosureError {
	var (
		e       *spec.ClosureError
		refused *closurequeue.RefusedError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, closurequeue.ErrRunEnded):
		return &spec.ClosureError{Kind: ErrRunEnded, Message: closurequeue.ErrRunEnded.Error()}
	case errors.As(err, &e):
		return e
	case errors.As(err, &refused):
		return &spec.ClosureError{Kind: ErrRefused, Message: refused.Message}
	}
	return &spec.ClosureError{Kind: ErrCoordinator, Message: err.Error()}
}
