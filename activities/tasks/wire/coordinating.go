package wire

import (
	"errors"
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// PathCoordinator is the path for programs that schedule closures. They POST [closure.SyncRequest].
const PathCoordinator = "/v1/coordinator"

// CodeQueueRefused means that the queue refused a request.
const CodeQueueRefused = "queue_refused"

// Refused returns the problem of a refused request, or nil for other errors. Of several problems,
// it returns the first.
func Refused(err error) *Problem {
	var (
		syntax  *strictjson.Error
		refused *closure.RefusedError
		invalid *spec.InvalidRequestError
		out     = &Problem{Code: CodeInvalid}
	)
	switch {
	case errors.As(err, &syntax):
		out.Field, out.Message = syntax.Path, syntax.Message
	case errors.As(err, &refused):
		out.Code, out.Message = CodeQueueRefused, refused.Error()
	case !errors.As(err, &invalid):
		return nil
	}
	if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
		first := invalid.Problems[0]
		out.Field, first.Path = first.Path, ""
		out.Message = first.String()
		if more := len(invalid.Problems) - 1 + invalid.More; more > 0 {
			out.Message = fmt.Sprintf("%s (and %d more problems)", out.Message, more)
		}
	}
	if out.Field != "" {
		out.Message = "field " + out.Field + ": " + out.Message
	}
	return out
}
