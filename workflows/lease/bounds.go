package lease

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
)

// Bounds are the two bounds of a run on several hosts that reach each other.
type Bounds struct {
	// Short is the time for which a process lives after the last lease of its host.
	Short time.Duration `json:"short"`
	// Long is the time for which a process lives after the last answer of the server, if it
	// answers no host of the run.
	Long time.Duration `json:"long"`
}

// graceShare is the part of the short bound in which a process can end by itself, and drift the
// part by which two clocks may differ: twice a hundredth, since the clocks of the holder and of
// the witness both count.
const (
	graceShare = 3
	drift      = 50
)

// Grace returns the time between the request to end and SIGKILL. It is part of the lease, which
// ends with SIGKILL.
func (b Bounds) Grace(stop time.Duration) time.Duration { return min(stop, b.Short/graceShare) }

// Passed returns the time after the beginning of a lease at which nothing lives under it.
func (b Bounds) Passed() time.Duration { return passed(b.Short) }

// LongPassed returns the time after the last answer of the server at which nothing lives,
// with any words of other hosts.
func (b Bounds) LongPassed() time.Duration { return passed(max(b.Short, b.Long)) }

func passed(d time.Duration) time.Duration { return d + d/drift + lifecycle.KillBound }
