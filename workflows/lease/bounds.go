package lease

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
)

// Bounds are the two bounds of a run on several hosts that can reach each other.
type Bounds struct {
	// Short is the maximum life of a process after its host's last lease.
	Short time.Duration `json:"short"`
	// Long is the maximum life of a process after the server's last answer while the server does
	// not answer any of the run's hosts.
	Long time.Duration `json:"long"`
}

// graceShare is a process's time to exit on its own, as a fraction of the short bound. drift is the
// maximum relative difference between two clocks. It is twice one percent, because both the
// holder's clock and the witness's may be off.
const (
	graceShare = 3
	drift      = 50
)

// Grace returns the time between the request to exit and SIGKILL. It is part of the lease, which
// expires with SIGKILL.
func (b Bounds) Grace(stop time.Duration) time.Duration { return min(stop, b.Short/graceShare) }

// Passed returns how long after the start of a lease its process must be dead.
func (b Bounds) Passed() time.Duration { return passed(b.Short) }

// LongPassed returns how long after the server's last answer every process must be dead, regardless
// of other hosts' answers.
func (b Bounds) LongPassed() time.Duration { return passed(max(b.Short, b.Long)) }

func passed(d time.Duration) time.Duration { return d + d/drift + lifecycle.KillBound }
