package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// KillBound is the maximum time a process takes to exit after SIGKILL.
	KillBound = 10 * time.Second
	// fenceMargin allows for late timers. fenceDrift allows for clocks that drift apart by one
	// percent, which is twenty times the drift of synchronized clocks.
	fenceMargin = 5 * time.Second
	fenceDrift  = 100
)

// Fence computes when none of a run's processes can be alive on a silent host. The host lets a
// process run for StopAfter, counted from when it sent the task's last request that the server
// answered, at the latest when the server recorded that request. Then it stops the process, with
// its grace.
type Fence struct{ StopAfter, Grace time.Duration }

// FenceOf returns the fence for a run on the given number of hosts. ok is false if the hosts let
// processes run without limit, so that no host can be given up.
func FenceOf(s *spec.RunSpec, hosts int) (f Fence, ok bool) {
	f = Fence{StopAfter: s.StopAfter(hosts), Grace: s.LongestGrace()}
	return f, f.StopAfter > 0
}

// Passed returns how long a host must be silent before none of the run's processes can be alive on
// it.
func (f Fence) Passed() time.Duration {
	return f.StopAfter + f.StopAfter/fenceDrift + f.Grace + KillBound + fenceMargin
}
