// Package metrics has the metrics of a host worker, in the form of Prometheus, and serves
// them over HTTP.
//
// A label has few values, all known beforehand: names of runs, tasks, barriers and closures
// are none, nor is anything that users write. What the workflows and Temporal's SDK count
// comes through [Metrics.SDK].
//
// Counters begin at 0 with each Temporal-facing side, as Prometheus expects of a program
// that is started again. Gauges are true again once the side has adopted its processes.
package metrics
