package report

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Remaining returns the estimated remaining time of a sweep, such as "; about 3m left", or "" if
// there is no estimate.
func Remaining(s *spec.SweepStatus) string {
	if s.RemainingSeconds == 0 {
		return ""
	}
	return fmt.Sprintf("; about %s left", cli.Roughly(time.Duration(s.RemainingSeconds)*time.Second))
}
