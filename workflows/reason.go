package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// reasonOf returns why an activity failed, without the names and numbers that the SDK adds.
func reasonOf(err error) string {
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	var activity *temporal.ActivityError
	switch {
	case errors.As(err, &app):
		return app.Message() // even if a deadline ended the attempts
	case errors.As(err, &timeout):
		return spec.NoAnswerText
	case temporal.IsCanceledError(err):
		return "it was cancelled"
	case errors.As(err, &activity) && activity.Unwrap() != nil:
		return activity.Unwrap().Error()
	}
	return err.Error()
}
