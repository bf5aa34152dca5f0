package spec

import (
	"fmt"
	"strings"
)

// Causes are all values of [Cause], each with what it means in a few words and in a line.
var Causes = []struct {
	Cause   Cause
	Words   string
	Meaning string
}{
	{CauseCompleted, "completed", "it exited with 0, by itself"},
	{CauseOrigin, "failed by itself", "it failed by itself: another exit code, or a signal that clusterrun did not send"},
	{CauseOOM, "out of memory", "the kernel killed it at the memory limit"},
	{CauseLogQuota, "too much output", "it was stopped because the run had reached its log quota on that host"},
	{CauseSilence, "silent", "it was stopped because the run was silent on that host (on_silence)"},
	{CauseCollateral, "stopped in order", "clusterrun stopped it because another task had failed or the run was over"},
	{CauseOperator, "stopped on request", "it was stopped on request"},
	{CauseTimeout, "out of time", "it was stopped because timeout or max_run_time had passed"},
	{CauseHostLost, "lost with its host", "it ended with its host or the supervisor there, or was stopped by that"},
}

// Words returns what the cause means, where there is little room.
func (c Cause) Words() string {
	for _, known := range Causes {
		if known.Cause == c {
			return known.Words
		}
	}
	return string(c)
}

// CausesText returns a line for each of [Causes], for a help text.
func CausesText() string {
	var b strings.Builder
	for _, c := range Causes {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.Cause, c.Meaning)
	}
	return b.String()
}
