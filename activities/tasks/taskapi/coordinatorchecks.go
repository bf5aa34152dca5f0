package taskapi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// scheduleOf returns the request in the form that the queue accepts.
func scheduleOf(in *wire.ScheduleRequest) closure.ScheduleRequest {
	for i := range in.Closures {
		c := &in.Closures[i]
		c.Args, c.Kwargs = closure.Escaped(c.Args), closure.Escaped(c.Kwargs)
	}
	return closure.ScheduleRequest{Client: in.Session, Batch: in.Batch, Epoch: in.Epoch, Closures: in.Closures}
}

func resourceOf(in *wire.ResourceRequest) closure.ResourceRequest {
	in.Args, in.Kwargs = closure.Escaped(in.Args), closure.Escaped(in.Kwargs)
	return closure.ResourceRequest{Client: in.Session, Number: in.Number, Resource: in.Resource}
}

func checkSchedule(in *wire.ScheduleRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(wire.CodeInvalid, scheduleOf(in).Validate())
}

func checkWait(in *wire.WaitRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(wire.CodeInvalid, closure.WaitRequest{Client: in.Session, Call: in.Call}.Validate())
}

func checkResource(in *wire.ResourceRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(wire.CodeInvalid, resourceOf(in).Validate())
}

func releaseOf(in *wire.ReleaseRequest) closure.ReleaseRequest {
	return closure.ReleaseRequest{Client: in.Session, Resources: in.Resources}
}

func checkRelease(in *wire.ReleaseRequest) *wire.Problem {
	if problem := checkSession(in.Session); problem != nil {
		return problem
	}
	return invalidRequest(wire.CodeInvalid, releaseOf(in).Validate())
}

func checkCancel(in *closure.CancelRequest) *wire.Problem {
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

// invalidRequest returns the first problem of a request, with the field names of this API, in
// which a resource is the request itself.
func invalidRequest(code string, err error) *wire.Problem {
	var wrong *spec.InvalidRequestError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong) || len(wrong.Problems) == 0:
		return &wire.Problem{Code: code, Message: err.Error()}
	}
	p := wrong.Problems[0]
	field := strings.TrimPrefix(p.Path, "resource.")
	p.Path = ""
	message := p.String()
	if more := len(wrong.Problems) - 1 + wrong.More; more > 0 {
		message = fmt.Sprintf("%s (and %d more problems)", message, more)
	}
	problem := invalid(field, message)
	problem.Code = code
	return problem
}
