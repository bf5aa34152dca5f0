// Package metrics contains a host worker's metrics, in Prometheus's format, and serves them over
// HTTP.
//
// Each label has only a few values, which are known in advance. The names of runs, tasks, barriers
// and closures are not used as labels, nor is anything else that users write. The metrics of the
// workflows and the Temporal SDK are recorded through [Metrics.SDK].
//
// Counters start at 0 whenever a Temporal-facing side starts, as Prometheus expects of a program
// that restarts. Gauges are correct again once the side has adopted its processes.
package metrics
