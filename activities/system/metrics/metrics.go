package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Metrics contains one host worker's metrics.
type Metrics struct {
	// Ready reports whether the server has registered this host worker and has not rejected it
	// since. It is served at /ready.
	Ready    atomic.Bool
	registry *prometheus.Registry
	sdk      sdk

	// Processes counts the processes that this host worker is waiting for.
	Processes prometheus.Gauge
	// Starts observes how long processes take to start.
	Starts prometheus.Histogram
	// Exits counts process exits, by cause.
	Exits *prometheus.CounterVec
	// Restarts counts processes that replace an earlier one of the same launch.
	Restarts prometheus.Counter
	// LogBytes counts the bytes written by processes that have exited.
	LogBytes prometheus.Counter
	// Orphans counts processes that other processes had left behind and that were killed.
	Orphans prometheus.Counter
	// Steps observes how long processes take for their steps, excluding waits at barriers.
	Steps prometheus.Histogram
	// BarrierWaits observes how long tasks wait at barriers across hosts, by outcome.
	BarrierWaits *prometheus.HistogramVec
	// Closures counts closures with calls that finished on this host, by outcome.
	Closures *prometheus.CounterVec
}

// times are the buckets for durations from a millisecond to half an hour.
var times = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800}

// New returns metrics in a new registry.
func New() *Metrics {
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		Processes: prometheus.NewGauge(prometheus.GaugeOpts{Name: "clusterrun_processes", Help: "Processes of tasks that are alive on this host."}),
		Starts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "clusterrun_process_start_seconds", Help: "Time to start a task's process.", Buckets: times}),
		Exits:    counters("clusterrun_process_exits_total", "Task processes that have exited, by cause.", "cause"),
		Restarts: counter("clusterrun_process_restarts_total", "Processes started for a task after an earlier one exited."),
		LogBytes: counter("clusterrun_log_bytes_total", "Output that exited processes had written to files, in bytes."),
		Orphans:  counter("clusterrun_orphans_swept_total", "Processes left behind by an exited one, and stopped."),
		Steps: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "clusterrun_step_seconds", Help: "Time that a process took for a step of its progress, or for a round of a barrier of all tasks, excluding waits at barriers.", Buckets: times}),
		BarrierWaits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "clusterrun_barrier_wait_seconds", Help: "Time that a task waited at a barrier across hosts, by outcome.", Buckets: times}, []string{"outcome"}),
		Closures: counters("clusterrun_closures_total", "Closure calls that have ended on this host, by outcome.", "outcome"),
	}
	// Start each series at 0, because the first event in a new series would not count as an
	// increase.
	for _, c := range spec.Causes {
		m.Exits.WithLabelValues(string(c.Cause))
	}
	for _, kind := range closure.OutcomeKinds {
		m.Closures.WithLabelValues(string(kind))
	}
	m.sdk.registry = m.registry
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.Processes, m.Starts, m.Exits, m.Restarts, m.LogBytes, m.Orphans, m.Steps, m.BarrierWaits, m.Closures,
	)
	return m
}

// LeaseAge registers the age of the fleet's lease on this host: the time since the server last
// confirmed it.
func (m *Metrics) LeaseAge(confirmed func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "clusterrun_host_lease_age_seconds", Help: "Time since the server last confirmed that this host is in the queue.",
	}, func() float64 { return time.Since(confirmed()).Seconds() }))
}

// FailedChecks registers the number of this host's failing checks.
func (m *Metrics) FailedChecks(failed func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "clusterrun_host_checks_failed", Help: "Checks of this host that fail or have no result yet; it gets no new tasks unless this is 0.",
	}, func() float64 { return float64(failed()) }))
}

// SlowestTask registers the step time of the slowest task, divided by the median of the other
// tasks' step times.
func (m *Metrics) SlowestTask(ratio func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "clusterrun_slowest_task_ratio", Help: "The slowest task's step time divided by the median of the other tasks, for a run on this host; 1 if no task is slow.",
	}, ratio))
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}
