package closurequeue

import (
	"context"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// Check refuses a closure that cannot be scheduled, with a [closure.RefusedError]. It is
// looked at here and not only by the queue, where a problem is one of all closures that are
// sent together; and what is far too large a server does not even take, and it would be
// sent again and again. Which functions there are only the queue knows.
func (q *Queue) Check(ctx context.Context, c closure.Closure) error {
	c = escaped(c)
	if err := c.Validate(); err != nil {
		return &closure.RefusedError{Reason: err}
	}
	return within(q.tasks.Check(ctx, c), "closures[0].")
}

// escaped returns a closure as it is sent.
func escaped(c closure.Closure) closure.Closure {
	c.Args, c.Kwargs = closure.Escaped(c.Args), closure.Escaped(c.Kwargs)
	return c
}

// checkedResource returns a resource as it is sent, or why no queue would take it.
func checkedResource(r closure.Resource) (closure.Resource, error) {
	r.Args, r.Kwargs = closure.Escaped(r.Args), closure.Escaped(r.Kwargs)
	if err := r.Validate(); err != nil {
		return r, &closure.RefusedError{Reason: err}
	}
	return r, nil
}

// within returns err with paths as they are within the closure, or resource, that a request
// was about.
func within(err error, prefix string) error {
	return closure.Renamed(err, func(path string) string { return strings.TrimPrefix(path, prefix) })
}
