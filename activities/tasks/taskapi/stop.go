package taskapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxStopWait limits the wait of one request. Clients retry. Without this limit, a request on a
	// connection that is never closed would wait forever.
	maxStopWait = time.Minute
	// maxKind limits an error's kind, in bytes.
	maxKind = 200
)

// getStop answers whether the run's tasks must stop, immediately or when that changes.
func getStop(r *request) (any, *wire.Problem) {
	if problem := r.canStop(); problem != nil {
		return nil, problem
	}
	q, problem := parseStopQuery(r.URL.RawQuery)
	if problem != nil {
		return nil, problem
	}
	e := r.endpoint
	now := e.stopping.Latest()
	if q.wait > 0 {
		timer := time.NewTimer(q.wait)
		defer timer.Stop()
		for !q.answeredBy(now.Value) {
			select {
			case <-now.Later():
				now = now.Next()
				continue
			case <-timer.C:
			case <-e.ended.Done():
				return nil, r.canStop()
			case <-r.Context().Done(): // the client no longer reads this answer
			}
			break
		}
	}
	return asAnswer(now.Value, time.Now()), nil
}

// stopQuery is a task's question about a stop.
type stopQuery struct {
	// wait is the maximum time to wait.
	wait time.Duration
	// after is the state number that the task already has. -1 means that it waits for a stop.
	after int
}

func (q stopQuery) answeredBy(s spec.Stopping) bool {
	if q.after >= 0 {
		return s.Seq > q.after
	}
	return s.Stop
}

func parseStopQuery(raw string) (stopQuery, *wire.Problem) {
	q := stopQuery{after: -1}
	if raw == "" {
		return q, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, invalid("", "the query is not escaped correctly")
	}
	for name, value := range values {
		switch name {
		case "wait":
			d, err := time.ParseDuration(value[0])
			if err != nil || d < 0 {
				return q, invalid(name, `must be a duration of 0s or more, such as "30s"`)
			}
			q.wait = min(d, maxStopWait)
		case "after":
			if q.after, err = strconv.Atoi(value[0]); err != nil || q.after < 0 {
				return q, invalid(name, "use the seq of an answer, a number from 0")
			}
		default:
			return q, invalid(cutName(name), "unknown parameter; the parameters are wait and after")
		}
	}
	return q, nil
}

// postStop handles a task's request that all the run's tasks stop.
func postStop(r *request) (any, *wire.Problem) {
	if problem := r.canStop(); problem != nil {
		return nil, problem
	}
	var in wire.Stop
	if problem := r.decode(&in, maxErrorBody); problem != nil {
		return nil, problem
	}
	if problem := checkKey(in.Key); problem != nil {
		return nil, problem
	}
	request := spec.TogetherRequest{Task: r.endpoint.id.Task, Key: in.Key, Reason: shorten.Text(in.Reason, wire.MaxStopText)}
	if request.Key == "" {
		request.Key = rand.Text()
	}
	if in.Error != nil {
		if problem := checkError(*in.Error, "error."); problem != nil {
			return nil, problem
		}
		request.Error = &spec.TogetherError{
			Kind: shorten.Text(in.Error.Kind, maxKind), Message: shorten.Text(in.Error.Message, wire.MaxStopText),
			Traceback: shorten.Traceback(in.Error.Traceback, wire.MaxStopTraceback),
		}
	}
	return r.askRun(func(ctx context.Context) (spec.Stopping, error) {
		return r.server.Stops.RequestStop(ctx, r.endpoint.id, request)
	})
}

// canStop returns a problem if the task cannot make stop requests.
func (r *request) canStop() *wire.Problem {
	if why := context.Cause(r.endpoint.ended); why != nil {
		return &wire.Problem{Code: wire.CodeOver, Message: why.Error()}
	}
	if r.server.Stops == nil {
		return &wire.Problem{Code: wire.CodeNotThere, Message: "this host worker does not support graceful stops"}
	}
	return nil
}

// askRun calls the run and returns its answer. The host uses the answer from then on, so a task
// that requested a stop sees it.
func (r *request) askRun(call func(context.Context) (spec.Stopping, error)) (any, *wire.Problem) {
	ctx, cancel := context.WithTimeout(r.Context(), r.server.patience.run)
	defer cancel()
	defer context.AfterFunc(r.endpoint.ended, cancel)()
	now, err := call(ctx)
	switch {
	case err == nil:
		r.endpoint.stopping.set(now)
		return asAnswer(now, time.Now()), nil
	case ctx.Err() == nil:
		return nil, &wire.Problem{Code: wire.CodeStopRefused, Message: err.Error()}
	}
	if problem := r.canStop(); problem != nil {
		return nil, problem
	}
	return nil, &wire.Problem{Code: wire.CodeUnavailable, Message: fmt.Sprintf(
		"the run did not answer within %s; ask again with the same key: %s", r.server.patience.run, err)}
}
