package taskapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Broker lets the processes of a run's tasks call closures.
type Broker interface {
	// Next accepts the report of a task's process, and returns its next work. It waits as long as
	// the request allows, or until ctx is done. The error is [ErrClosuresAway], [ErrProcessEnded],
	// or an error with a message for the program.
	Next(ctx context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error)
}

var (
	// ErrClosuresAway is the answer of a host that is restarting: the process must retry.
	ErrClosuresAway = errors.New("the host cannot handle closures at the moment; ask again")
	// ErrProcessEnded is the answer to a process that counts as ended.
	ErrProcessEnded = errors.New("the host considers this process exited: its closures are called again, and it receives no more")
)

// postClosures answers a serving process.
func postClosures(r *request) (any, *wire.Problem) {
	if r.server.Broker == nil {
		return nil, &wire.Problem{Code: wire.CodeNotThere, Message: "this host worker does not support closures for its tasks"}
	}
	var in wire.ClosuresRequest
	if problem := r.decode(&in, maxClosures); problem != nil {
		return nil, problem
	}
	if problem := checkClosures(&in); problem != nil {
		return nil, problem
	}
	ctx, stops, leave := r.endpoint.untilStop(r.Context(), &in)
	defer leave()
	var out wire.ClosuresAnswer
	by := r.endpoint.id
	b, err := r.server.Broker(by, in.Slots)
	if err == nil {
		out, err = b.Next(ctx, by.Task, in)
	}
	switch {
	case errors.Is(err, ErrClosuresAway):
		return nil, &wire.Problem{Code: wire.CodeClosuresAway, Message: err.Error()}
	case errors.Is(err, ErrProcessEnded):
		return nil, &wire.Problem{Code: wire.CodeProcessEnded, Message: err.Error()}
	case err != nil:
		return nil, internal(fmt.Errorf("closures: %w", err))
	}
	out.Stop = stops()
	return out, nil
}

// untilStop handles stops for a serving process's request. While the run's tasks are stopping, the
// process does not receive closures and does not wait. The returned ctx is cancelled when a stop
// starts. stops reports whether the answer must contain the stop, which it does until the process
// stops serving.
func (e *endpoint) untilStop(parent context.Context, in *wire.ClosuresRequest) (ctx context.Context, stops func() bool, leave context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	if in.Slots == 0 {
		return ctx, func() bool { return false }, cancel
	}
	now := e.stopping.Latest()
	if now.Value.Stop {
		in.Free, in.Wait = 0, 0
	}
	var watching sync.WaitGroup
	if in.Wait > 0 {
		watching.Go(func() {
			defer cancel()
			for !now.Value.Stop {
				select {
				case <-now.Later():
					now = now.Next()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	leave = func() {
		cancel()
		watching.Wait()
	}
	return ctx, func() bool { return e.stopping.Latest().Value.Stop }, leave
}

// maxClosures limits the body, in bytes. Outcomes and strings may be longer than the part of them
// that is kept.
const maxClosures = 4 << 20

// checkClosures returns a problem if a request is invalid.
func checkClosures(in *wire.ClosuresRequest) *wire.Problem {
	if problem := checkRandomName("process", in.Process); problem != nil {
		return problem
	}
	switch {
	case in.Seq == 0:
		return invalid("seq", "it is missing; number the process's requests from 1")
	case in.Slots < 0 || in.Slots > wire.MaxSlots:
		return invalid("slots", fmt.Sprintf("it is %d; use 0 to %d", in.Slots, wire.MaxSlots))
	case in.Free < 0 || in.Free > in.Slots:
		return invalid("free", fmt.Sprintf("it is %d; use 0 to slots, which is %d", in.Free, in.Slots))
	case !(in.Wait >= 0 && in.Wait <= closure.MaxWait):
		return invalid("wait", fmt.Sprintf("it is %g; use 0 to %d seconds", in.Wait, closure.MaxWait))
	}
	return nil
}

// checkRandomName returns a problem if a process's chosen name is invalid.
func checkRandomName(field, name string) *wire.Problem {
	switch {
	case name == "":
		return invalid(field, "it is empty; give the process a unique random name")
	case len(name) > wire.MaxProcess || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
		return invalid(field, fmt.Sprintf("must consist of at most %d ASCII letters, digits and punctuation, without spaces", wire.MaxProcess))
	}
	return nil
}
