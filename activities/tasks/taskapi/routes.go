package taskapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// request is a task's request.
type request struct {
	*http.Request
	w        http.ResponseWriter
	server   *Server
	endpoint *endpoint
	// name is a barrier's name.
	name string
}

// handler returns a value to be encoded as JSON.
type handler func(*request) (any, *wire.Problem)

// routes lists all paths except barrier paths.
var routes = map[string]map[string]handler{
	wire.PathTask:                {http.MethodGet: getTask},
	wire.PathClosures:            {http.MethodPost: postClosures},
	wire.PathCoordinator:         {http.MethodPost: postCoordinator},
	wire.PathCluster:             {http.MethodGet: getCluster},
	wire.PathResult:              {http.MethodPut: putResult},
	wire.PathError:               {http.MethodPut: putError},
	wire.PathProgress:            {http.MethodPut: putProgress},
	wire.PathStop:                {http.MethodGet: getStop, http.MethodPost: postStop},
	wire.PathBarriers + "{name}": {http.MethodPost: postBarrier, http.MethodDelete: deleteBarrier},
}

// answer finds a request's handler and calls it.
func (s *Server) answer(r *request) (any, *wire.Problem) {
	path := r.URL.EscapedPath()
	methods, ok := routes[path]
	if escaped, isBarrier := strings.CutPrefix(path, wire.PathBarriers); isBarrier && !strings.Contains(escaped, "/") {
		name, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, invalid("name", "it is not escaped correctly for a path")
		}
		r.name, methods, ok = name, routes[wire.PathBarriers+"{name}"], true
	}
	if !ok {
		return nil, &wire.Problem{Code: wire.CodeNotFound, Message: "no endpoint " + cutName(path) + "; see openapi.yaml"}
	}
	h, ok := methods[r.Method]
	if !ok {
		allowed := slices.Sorted(maps.Keys(methods))
		r.w.Header().Set("Allow", strings.Join(allowed, ", "))
		return nil, &wire.Problem{Code: wire.CodeMethod, Message: cutName(path) + " does not support " + r.Method + "; use " + strings.Join(allowed, " or ")}
	}
	return h(r)
}

func getTask(r *request) (any, *wire.Problem) {
	t := r.endpoint.view()
	return t.describe(), nil
}

func getCluster(r *request) (any, *wire.Problem) {
	return wire.Cluster{Members: r.endpoint.view().View.Members}, nil
}

// keepProgress limits the part of a message that is kept, in bytes. A much smaller part is shown.
const keepProgress = 1000

func putProgress(r *request) (any, *wire.Problem) {
	var p struct {
		Current *float64 `json:"current"`
		Total   float64  `json:"total"`
		Message string   `json:"message"`

		Metrics map[string]float64 `json:"metrics"`
	}
	if problem := r.decode(&p, maxSmall); problem != nil {
		return nil, problem
	}
	switch {
	case p.Current == nil:
		return nil, invalid("current", "it is missing; set how far the task has got, such as 3")
	case *p.Current < 0:
		return nil, invalid("current", "it cannot be negative")
	case p.Total < 0:
		return nil, invalid("total", "it cannot be negative; omit it if it is unknown")
	}
	if len(p.Metrics) > taskmetrics.Max {
		return nil, invalid("metrics", fmt.Sprintf("there are %d; give at most %d", len(p.Metrics), taskmetrics.Max))
	}
	for name := range p.Metrics {
		if !taskmetrics.IsName(name) {
			return nil, invalid("metrics", fmt.Sprintf("%q is not the name of a metric; use up to 40 letters, digits, '_', '-' and '.', such as loss", name))
		}
	}
	r.endpoint.setProgress(wire.Progress{Current: *p.Current, Total: p.Total, Message: shorten.Text(p.Message, keepProgress), Metrics: p.Metrics})
	return wire.Done{OK: true}, nil
}
