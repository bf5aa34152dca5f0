package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// KillBound is how long a host takes for a process after SIGKILL, at most.
	KillBound = 10 * time.Second
	// fenceMargin is for timers that go off late, and for clocks that drift apart: by a
	// hundredth, which is twenty times what clocks that are kept do.
	fenceMargin = 5 * time.Second
	fenceDrift  = 100
)

// Fence is what a run knows of a host from which it hears nothing: by when nothing of the
// run lives there. A host lets a process go on for StopAfter after it sent the last request
// for its task that the server answered, and the server has recorded that request later
// than it was sent. Then it stops the process, with its grace.
type Fence struct{ StopAfter, Grace time.Duration }

// FenceOf is that of a run on so many hosts. ok is false where hosts let processes go on
// without limit: then none can be given up.
func FenceOf(s *spec.RunSpec, hosts int) (f Fence, ok bool) {
	f = Fence{StopAfter: s.StopAfter(hosts), Grace: s.LongestGrace()}
	return f, f.StopAfter > 0
}

// Passed is after what time without a sign of life nothing of the run lives on a host.
func (f Fence) Passed() time.Duration {
	return f.StopAfter + f.StopAfter/fenceDrift + f.Grace + KillBound + fenceMargin
}
