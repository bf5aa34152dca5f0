// Package metrics has the metrics of a host worker, in the form of Prometheus, and serves
// them over HTTP.
//
// A label has few values, all known in advance: the names of runs, tasks, barriers and
// closures are not labels, and neither is anything that users write. The metrics of the
// workflows and of Temporal's SDK come through [Metrics.SDK].
//
// Counters begin at 0 with each Temporal-facing side, as Prometheus expects of a program that
// was restarted. Gauges are correct again once the side has adopted its processes.
package metrics
