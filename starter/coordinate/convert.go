package coordinate

import (
	"encoding/json"
	"errors"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/workflows/closure"
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
	what := closure.Closure{Function: c.Function, Options: c.Options}
	var err error
	if what.Args, err = json.Marshal(c.Args); err != nil {
		return err
	}
	if what.Kwargs, err = json.Marshal(c.Kwargs); err != nil {
		return err
	}
	if len(c.Args) == 0 {
		what.Args = nil
	}
	if len(c.Kwargs) == 0 {
		what.Kwargs = nil
	}
	return closure.ScheduleRequest{Client: "check", Batch: 1, Closures: []closure.Closure{what}}.Validate()
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
		e       *closure.Error
		refused *closurequeue.RefusedError
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
		refused *closurequeue.RefusedError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, closurequeue.ErrRunEnded):
		return &closure.Error{Kind: ErrRunEnded, Message: closurequeue.ErrRunEnded.Error()}
	case errors.As(err, &e):
		return e
	case errors.As(err, &refused):
		return &closure.Error{Kind: ErrRefused, Message: refused.Message}
	}
	return &closure.Error{Kind: ErrCoordinator, Message: err.Error()}
}
