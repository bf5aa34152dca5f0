// Package metrics contains a host worker's metrics, in Prometheus's format, and serves them over
// HTTP.
//
// A label has few values, all known in advance. The names of runs, tasks, barriers and closures are
// not labels, and neither is anything that users write. The workflows' and Temporal SDK's metrics
// come through [Metrics.SDK].
//
// Counters start at 0 with each Temporal-facing side, as Prometheus expects of a restarted program.
// Gauges are correct again once the side has adopted its processes.
package metrics
