package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// KillBound is the longest time a process may take to end after SIGKILL.
	KillBound = 10 * time.Second
	// fenceMargin allows for timers that fire late. fenceDrift allows for clocks that drift
	// apart by a hundredth, twenty times what synchronized clocks do.
	fenceMargin = 5 * time.Second
	fenceDrift  = 100
)

// Fence computes the time from which no process of a run lives on a silent host. The host lets
// a process run for StopAfter from the moment it sent the last request for its task that the
// server answered. That moment is at the latest the time at which the server recorded the
// request. Then it stops the process, with its grace.
type Fence struct{ StopAfter, Grace time.Duration }

// FenceOf returns the fence of a run on that many hosts. ok is false if the hosts let
// processes run without limit: then no host can be given up.
func FenceOf(s *spec.RunSpec, hosts int) (f Fence, ok bool) {
	f = Fence{StopAfter: s.StopAfter(hosts), Grace: s.LongestGrace()}
	return f, f.StopAfter > 0
}

// Passed returns the length of silence after which nothing of the run lives on a host.
func (f Fence) Passed() time.Duration {
	return f.StopAfter + f.StopAfter/fenceDrift + f.Grace + KillBound + fenceMargin
}
