package outcome

import (
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// StopNotice returns how much time tasks with a notice have left, what happens next, and why.
func StopNotice(n spec.StopNotice, now time.Time) string {
	text := "the tasks will be stopped"
	if left := n.Deadline.Sub(now).Round(time.Second); left > 0 {
		text += " in " + left.String()
	} else {
		text += " now"
	}
	if n.Requeue {
		text += ", and the run will be pending again"
	}
	return text + ": " + n.String()
}

// Preempted describes how many times a run was preempted and how long it has been pending since; It
// returns "" if neither applies.
func Preempted(times int, since time.Time, zone *time.Location) string {
	var parts []string
	if times > 0 {
		parts = append(parts, "preempted "+units.Count(times, "time", "times"))
	}
	if !since.IsZero() {
		parts = append(parts, "pending again since "+since.In(zone).Format(time.DateTime))
	}
	return strings.Join(parts, ", ")
}
