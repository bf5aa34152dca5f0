package spec

import (
	"fmt"
	"strings"
)

// Causes are all values of [Cause], each with what it means in a line.
var Causes = []struct {
	Cause   Cause
	Meaning string
}{
	{CauseCompleted, "it exited with 0, by itself"},
	{CauseOrigin, "it failed by itself: another exit code, or a signal that clusterrun did not send"},
	{CauseOOM, "the kernel killed it at the memory limit"},
	{CauseLogQuota, "the run had written more output on that host than it may"},
	{CauseSilence, "it was stopped because the run was silent on that host (on_silence)"},
	{CauseCollateral, "clusterrun stopped it in order, since another task had failed or the run was over"},
	{CauseOperator, "somebody asked for its end"},
	{CauseTimeout, "it was stopped because timeout or max_run_time had passed"},
	{CauseHostLost, "its host, or the supervisor there, died under it or stopped it"},
}

// CausesText returns a line for each of [Causes], for a help text.
func CausesText() string {
	var b strings.Builder
	for _, c := range Causes {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.Cause, c.Meaning)
	}
	return b.String()
}
