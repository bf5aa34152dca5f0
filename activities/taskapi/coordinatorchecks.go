package taskapi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// scheduleOf is the request as the queue knows it. Its error is for the task.
func scheduleOf(in *wire.ScheduleRequest) (closure.ScheduleRequest, error) {
	out := closure.ScheduleRequest{Client: in.Session, Batch: in.Batch, Epoch: in.Epoch, Closures: make([]closure.Closure, len(in.Closures))}
	for i := range in.Closures {
		c := &in.Closures[i]
		out.Closures[i] = closure.Closure{Function: c.Function, Args: closure.Escaped(c.Args), Kwargs: closure.Escaped(c.Kwargs), Resources: c.Resources}
		if c.Options == nil {
			continue
		}
		o := &closure.Options{
			Key: c.Options.Key, Retry: c.Options.Retry, Task: c.Options.Task, Detached: c.Options.Detached, Priority: c.Options.Priority,
			Retries: c.Options.Retries, MaxLosses: c.Options.MaxLosses,
		}
		if text := c.Options.Timeout; text != "" {
			var err error
			if o.Timeout, err = spec.ParseDuration(text); err != nil {
				return out, &spec.InvalidRequestError{Problems: []spec.Problem{{
					Path: fmt.Sprintf("closures[%d].options.timeout", i), Message: err.Error(),
				}}}
			}
		}
		out.Closures[i].Options = o
	}
	return out, nil
}

func resourceOf(in *wire.ResourceRequest) closure.ResourceRequest {
	return closure.ResourceRequest{
		Client: in.Session, Number: in.Number,
		Resource: closure.Resource{Function: in.Function, Args: closure.Escaped(in.Args), Kwargs: closure.Escaped(in.Kwargs)},
	}
}

func checkSchedule(in *wire.ScheduleRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	request, err := scheduleOf(in)
	if err == nil {
		err = request.Validate()
	}
	return invalidRequest(err)
}

func checkWait(in *wire.WaitRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(closure.WaitRequest{Client: in.Session, Call: in.Call}.Validate())
}

func checkResource(in *wire.ResourceRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(resourceOf(in).Validate())
}

func releaseOf(in *wire.ReleaseRequest) closure.ReleaseRequest {
	return closure.ReleaseRequest{Client: in.Session, Resources: in.Resources}
}

func checkRelease(in *wire.ReleaseRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(releaseOf(in).Validate())
}

func checkCancel(in *wire.CancelRequest) *wire.Problem {
	return checkIDs(in.Closures)
}

func checkOutcomes(in *wire.OutcomesRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	if in.After == "" {
		return invalid("after", "it is missing; give the at of the answer before, or that of "+wire.PathCoordinatorOpen)
	}
	return checkWaitSeconds(in.Wait)
}

func checkFind(in *wire.FindRequest) *wire.Problem {
	if len(in.Closures) == 0 {
		return invalid("closures", "it is empty; want the IDs of closures")
	}
	return checkIDs(in.Closures)
}

func checkIDs(ids []uint64) *wire.Problem {
	if len(ids) > maxListed {
		return invalid("closures", fmt.Sprintf("it has %d elements; the limit is %d", len(ids), maxListed))
	}
	return nil
}

func checkSession(session string) *wire.Problem {
	return checkRandomName("session", session)
}

// invalidRequest is the first problem of a request, in the words of this API.
func invalidRequest(err error) *wire.Problem {
	var wrong *spec.InvalidRequestError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong) || len(wrong.Problems) == 0:
		return internal(err)
	}
	p := wrong.Problems[0]
	field := inOurWords(p.Path)
	p.Path = ""
	message := p.String()
	if more := len(wrong.Problems) - 1 + wrong.More; more > 0 {
		message = fmt.Sprintf("%s (and %d more problems)", message, more)
	}
	return invalid(field, message)
}

// inOurWords has the fields that a message of the queue names as they are here, where a
// resource is the request itself.
func inOurWords(message string) string {
	return strings.ReplaceAll(message, "resource.", "")
}
