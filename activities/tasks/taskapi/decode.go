package taskapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Limits of bodies, in bytes. Within reason, an error that is too long is truncated rather than
// refused.
const (
	maxSmall     = 64 << 10
	maxArrive    = 256 << 10 // a thousand participants by name
	maxErrorBody = 8 << 20
)

// body reads the whole body.
func (r *request) body(most int64) ([]byte, *wire.Problem) {
	b, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &wire.Problem{Code: wire.CodeTooLarge, Message: fmt.Sprintf("the body exceeds the limit of %d bytes", most)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &wire.Problem{Code: wire.CodeTooSlow, Message: fmt.Sprintf("the body did not arrive within %s", r.server.patience.body)}
	case err != nil:
		return nil, &wire.Problem{Code: wire.CodeInvalid, Message: "cannot read the body: " + err.Error()}
	}
	// A wait at a barrier may be long.
	_ = http.NewResponseController(r.w).SetReadDeadline(time.Time{})
	return b, nil
}

// decode reads the body as a JSON object with only the fields of v. An empty body counts as an
// empty object.
func (r *request) decode(v any, most int64) *wire.Problem {
	b, problem := r.body(most)
	if problem != nil {
		return problem
	}
	if len(b) == 0 {
		return nil
	}
	if wrong, ok := errors.AsType[*strictjson.Error](strictjson.Decode(b, v)); ok {
		return invalid(wrong.Path, wrong.Message)
	}
	return nil
}
