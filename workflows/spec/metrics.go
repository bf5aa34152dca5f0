package spec

// The names of metrics that workflows record; a counter and a time. See package metrics for
// how they are shown.
const (
	MetricRunsEnded = "clusterrun_runs_ended"
	MetricQueueWait = "clusterrun_queue_wait"
)

// Ending is how a run may end: the labels of [MetricRunsEnded].
type Ending struct {
	Verdict Verdict
	// Cause is as [RunResult.Cause] returns it.
	Cause Cause
}

// Endings returns the usual ones: all causes of a failure, and one of each other verdict.
func Endings() []Ending {
	all := []Ending{
		{VerdictSucceeded, CauseCompleted}, {VerdictTimedOut, CauseTimeout}, {VerdictCancelled, CauseOperator},
		{VerdictFailed, ""}, // no process had to do with it
	}
	for _, c := range Causes {
		if c.Cause != CauseCompleted && c.Cause != CauseCollateral {
			all = append(all, Ending{VerdictFailed, c.Cause})
		}
	}
	return all
}
