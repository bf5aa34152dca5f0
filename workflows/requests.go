package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// register installs the handlers. It must run before the workflow first blocks. Requests that
// arrive during placement are queued.
func (r *clusterRun) register(ctx workflow.Context) error {
	if err := answerStatusBy(ctx, r.report.answerStatus); err != nil {
		return err
	}
	for _, u := range lifecycle.Updates {
		if err := r.install(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// install installs an update's handler. An impossible update is refused immediately. Any other is
// answered once it has reached the hosts.
func (r *clusterRun) install(ctx workflow.Context, u lifecycle.Update) error {
	handle := func(ctx workflow.Context, input converter.RawValue) (any, error) {
		r.requests++
		e, err := u.Event(decodeFrom(input), workflow.Now(ctx))
		if err != nil {
			return nil, refused(err)
		}
		if start, ok := e.(lifecycle.StartTask); ok {
			if err := r.checkStart(ctx, start); err != nil {
				return nil, err
			}
		}
		answer, done := workflow.NewFuture(ctx)
		r.events.Send(ctx, request{event: e, done: done, stopping: u.Stopping})
		var out any
		err = answer.Get(ctx, &out)
		return out, err
	}
	validate := func(ctx workflow.Context, input converter.RawValue) error {
		e, err := u.Event(decodeFrom(input), time.Time{})
		if err != nil {
			return refused(err)
		}
		if !lifecycle.Ends(e) && r.handover.isLeaving(ctx) {
			return errGoesOn()
		}
		if err := r.machine.Check(e); err != nil {
			return refused(err)
		}
		return nil
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, u.Name, handle, workflow.UpdateHandlerOptions{
		Validator: validate, Description: u.Doc,
	})
}

// decodeFrom returns a function that stores an update's input.
func decodeFrom(input converter.RawValue) func(any) error {
	return func(v any) error {
		p := input.Payload()
		if p == nil {
			return nil // without an input
		}
		if key := spec.MissingKey(p.GetMetadata()); key != nil {
			return key
		}
		if string(p.GetMetadata()[converter.MetadataEncoding]) != converter.MetadataEncodingJSON {
			return converter.GetDefaultDataConverter().FromPayload(p, v)
		}
		err := strictjson.DecodeKnown(p.GetData(), v)
		if wrong, ok := errors.AsType[*strictjson.Error](err); ok {
			return &spec.InvalidRequestError{Problems: []spec.Problem{{Path: wrong.Path, Message: wrong.Message}}}
		}
		return err
	}
}
