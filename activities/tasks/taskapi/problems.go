package taskapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// statuses maps each code to an HTTP status.
var statuses = map[string]int{
	wire.CodeInvalid:          http.StatusBadRequest,
	wire.CodeNotFound:         http.StatusNotFound,
	wire.CodeMethod:           http.StatusMethodNotAllowed,
	wire.CodeTooLarge:         http.StatusRequestEntityTooLarge,
	wire.CodeTooSlow:          http.StatusRequestTimeout,
	wire.CodeClosuresAway:     http.StatusServiceUnavailable,
	wire.CodeProcessEnded:     http.StatusConflict,
	wire.CodeQueueRefused:     http.StatusConflict,
	wire.CodeNoFiles:          http.StatusConflict,
	wire.CodeInternal:         http.StatusInternalServerError,
	wire.CodeBarrierTimeout:   http.StatusConflict,
	wire.CodeBarrierBroken:    http.StatusConflict,
	wire.CodeBarrierMismatch:  http.StatusConflict,
	wire.CodeAlreadyWaiting:   http.StatusConflict,
	wire.CodeNotAParticipant:  http.StatusConflict,
	wire.CodeNotLocal:         http.StatusConflict,
	wire.CodeBarrierWithdrawn: http.StatusConflict,
	wire.CodeStopRefused:      http.StatusConflict,
	wire.CodeOver:             http.StatusConflict,
	wire.CodeNotThere:         http.StatusNotImplemented,
	wire.CodeUnavailable:      http.StatusServiceUnavailable,
}

// invalid returns a problem with a request. field may be empty.
func invalid(field, message string) *wire.Problem {
	if field != "" {
		message = "field " + field + ": " + message
	}
	return &wire.Problem{Code: wire.CodeInvalid, Message: message, Field: field}
}

func internal(err error) *wire.Problem {
	return &wire.Problem{Code: wire.CodeInternal, Message: err.Error()}
}

func writeProblem(w http.ResponseWriter, p *wire.Problem) {
	if p.Code == wire.CodeTooSlow {
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, statuses[p.Code], wire.Failure{Error: *p})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer could not be encoded"}}`)
	}
	b = append(b, '\n')
	// A client that does not read must not block the server.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writePatience))
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

var jsonType = []string{"application/json"}
