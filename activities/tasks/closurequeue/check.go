package closurequeue

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// check returns a [closure.RefusedError] if a closure cannot be scheduled. The queue checks
// as well, but there a problem affects all closures of a request, and the server does not
// accept a request that is far too large, so it would be retried forever. Only the queue
// knows which functions exist.
func check(c closure.Closure) error {
	c = escaped(c)
	if err := c.Validate(); err != nil {
		return &closure.RefusedError{Reason: err}
	}
	return nil
}

// escaped returns a closure in the form in which it is sent.
func escaped(c closure.Closure) closure.Closure {
	c.Args, c.Kwargs = closure.Escaped(c.Args), closure.Escaped(c.Kwargs)
	return c
}

// checkedResource returns a resource in the form in which it is sent, or the reason why every
// queue would refuse it.
func checkedResource(r closure.Resource) (closure.Resource, error) {
	r.Args, r.Kwargs = closure.Escaped(r.Args), closure.Escaped(r.Kwargs)
	if err := r.Validate(); err != nil {
		return r, &closure.RefusedError{Reason: err}
	}
	return r, nil
}

// within returns err with paths relative to the closure or resource of the request.
func within(err error, prefix string) error {
	return closure.Renamed(err, func(path string) string { return strings.TrimPrefix(path, prefix) })
}
