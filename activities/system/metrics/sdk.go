package metrics

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// labels are the labels of SDK and workflow metrics; each has few values. The SDK's other labels
// are left out.
var labels = []string{
	"namespace", "task_queue", "workflow_type", "activity_type", "operation", "worker_type", "poller_type",
	"failure_reason", "status_code", "verdict", "cause",
}

// labelsOf returns a metric's labels. For metrics of workflows, it omits the labels that the SDK
// adds, since they have the same values in all of them.
func labelsOf(name string) []string {
	switch name {
	case spec.MetricRunsEnded + "_total":
		return []string{"namespace", "task_queue", "verdict", "cause"}
	case spec.MetricQueueWait + "_seconds", runsOpen:
		return []string{"namespace", "task_queue"}
	}
	return labels
}

// runsOpen is the name of the gauge that [Metrics.RunsOpen] returns.
const runsOpen = "clusterrun_runs_open"

// BeginRuns sets the counters of a queue's ended runs to 0, because the first event in a new series
// would not count as an increase.
func (m *Metrics) BeginRuns(namespace, queue string) {
	t := m.SDK().With(map[string]string{"namespace": namespace, "task_queue": queue})
	for _, e := range spec.Endings() {
		t.With(map[string]string{"verdict": string(e.Verdict), "cause": string(e.Cause)}).Counter(spec.MetricRunsEnded)
	}
}

// RunsOpen returns the gauge of a queue's open runs, as last reported by the server.
func (m *Metrics) RunsOpen(namespace, queue string) prometheus.Gauge {
	return m.SDK().With(map[string]string{"namespace": namespace, "task_queue": queue}).Gauge(runsOpen)
}

// sdk contains the metrics by name. Each is created on first use.
type sdk struct {
	registry *prometheus.Registry
	byName   sync.Map // from string to prometheus.Collector
}

// Tagged creates metrics with certain label values. Except for the types of its results, it
// implements the SDK's MetricsHandler.
type Tagged struct {
	sdk  *sdk
	tags prometheus.Labels
}

// SDK returns a Tagged without labels.
func (m *Metrics) SDK() Tagged {
	t := Tagged{sdk: &m.sdk, tags: prometheus.Labels{}}
	for _, label := range labels {
		t.tags[label] = "" // Prometheus treats an empty label as absent
	}
	return t
}

// With returns a Tagged with these values added, ignoring unknown labels.
func (t Tagged) With(tags map[string]string) Tagged {
	with := maps.Clone(t.tags)
	for name, value := range tags {
		if name == "task_queue" {
			value = lasting(value)
		}
		if _, known := with[name]; known {
			with[name] = value
		}
	}
	return Tagged{sdk: t.sdk, tags: with}
}

// tagsOf returns the values of a metric's labels.
func (t Tagged) tagsOf(name string) prometheus.Labels {
	tags := prometheus.Labels{}
	for _, label := range labelsOf(name) {
		tags[label] = t.tags[label]
	}
	return tags
}

// lasting returns the name of a task queue without the parts that change each time a host worker or
// the SDK starts.
func lasting(queue string) string {
	const ofSDK = "temporal-sys"
	if strings.HasPrefix(queue, ofSDK+"/") {
		return ofSDK
	}
	ours, rest, _ := strings.Cut(queue, "/host/")
	host, _, ofInstance := strings.Cut(rest, "/")
	if ofInstance {
		return spec.HostQueue(ours, host)
	}
	return queue
}

// Counter returns the counter with the given name.
func (t Tagged) Counter(name string) prometheus.Counter {
	name = strings.TrimSuffix(name, "_total") + "_total"
	return made(t, name, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help(name)}, labelsOf(name))
	}).With(t.tagsOf(name))
}

// Gauge returns the gauge with the given name.
func (t Tagged) Gauge(name string) prometheus.Gauge {
	return made(t, name, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help(name)}, labelsOf(name))
	}).With(t.tagsOf(name))
}

// Timer returns a function that records a duration under a name.
func (t Tagged) Timer(name string) func(time.Duration) {
	name += "_seconds"
	observer := made(t, name, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help(name), Buckets: times}, labelsOf(name))
	}).With(t.tagsOf(name))
	return func(d time.Duration) { observer.Observe(d.Seconds()) }
}

// made returns the collector with the given name. The first one that is created is registered.
func made[C prometheus.Collector](t Tagged, name string, make func() C) C {
	if c, ok := t.sdk.byName.Load(name); ok {
		return c.(C)
	}
	c, there := t.sdk.byName.LoadOrStore(name, make())
	if !there {
		t.sdk.registry.MustRegister(c.(C))
	}
	return c.(C)
}

func help(name string) string {
	switch name {
	case spec.MetricRunsEnded + "_total":
		return "Runs that have ended, by outcome and cause."
	case spec.MetricQueueWait + "_seconds":
		return "Time from a run's start until all its tasks were placed."
	case runsOpen:
		return "The queue's runs that have not ended, as last reported by the server."
	}
	return "See the documentation of Temporal's SDK."
}
