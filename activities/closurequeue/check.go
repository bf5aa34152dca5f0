package closurequeue

import (
	"fmt"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// checked is a closure as it is sent. It is looked at here and not only by the queue,
// where a problem is one of all closures that are sent together; and what is far too
// large a server does not even take, and it would be sent again and again.
func checked(c closure.Closure) (closure.Closure, error) {
	c.Args, c.Kwargs = closure.Escaped(c.Args), closure.Escaped(c.Kwargs)
	if err := c.Validate(); err != nil {
		return c, refusedHere(c.Function, "scheduled", err)
	}
	return c, nil
}

// checkedResource is the same for a resource.
func checkedResource(r closure.Resource) (closure.Resource, error) {
	r.Args, r.Kwargs = closure.Escaped(r.Args), closure.Escaped(r.Kwargs)
	if err := r.Validate(); err != nil {
		return r, refusedHere(r.Function, "built", err)
	}
	return r, nil
}

func refusedHere(function, what string, err error) error {
	text := strings.TrimPrefix(err.Error(), "invalid request: ")
	return &RefusedError{Message: fmt.Sprintf("%.200s cannot be %s: %s", function, what, text), reason: err}
}
