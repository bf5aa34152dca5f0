package spec

// The names of metrics that workflows record; a counter and a time. See package metrics for
// how they are shown.
const (
	MetricRunsEnded = "clusterrun_runs_ended"
	MetricQueueWait = "clusterrun_queue_wait"
)
