package metrics

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// labels are those that metrics of the SDK and of workflows have, each with few values. What
// else the SDK knows of a request is left out.
var labels = []string{
	"namespace", "task_queue", "workflow_type", "activity_type", "operation", "worker_type", "poller_type",
	"failure_reason", "status_code", "verdict", "cause",
}

// labelsOf returns the labels of a metric. Workflows record theirs through the SDK, whose labels
// say the same of all of them.
func labelsOf(name string) []string {
	switch name {
	case spec.MetricRunsEnded + "_total":
		return []string{"namespace", "task_queue", "verdict", "cause"}
	case spec.MetricQueueWait + "_seconds", runsOpen:
		return []string{"namespace", "task_queue"}
	}
	return labels
}

// runsOpen is the name of what [Metrics.RunsOpen] returns.
const runsOpen = "clusterrun_runs_open"

// BeginRuns has the counters of the ends of a queue's runs begin at 0: a series that begins with
// its first event has no increase then.
func (m *Metrics) BeginRuns(namespace, queue string) {
	t := m.SDK().With(map[string]string{"namespace": namespace, "task_queue": queue})
	for _, e := range spec.Endings() {
		t.With(map[string]string{"verdict": string(e.Verdict), "cause": string(e.Cause)}).Counter(spec.MetricRunsEnded)
	}
}

// RunsOpen returns how many runs of a queue are open, as the server last said.
func (m *Metrics) RunsOpen(namespace, queue string) prometheus.Gauge {
	return m.SDK().With(map[string]string{"namespace": namespace, "task_queue": queue}).Gauge(runsOpen)
}

// sdk has the metrics by name, as they come.
type sdk struct {
	registry *prometheus.Registry
	byName   sync.Map // from string to prometheus.Collector
}

// Tagged makes metrics with these values of labels. It is what the SDK takes for a
// MetricsHandler, but for the types of results.
type Tagged struct {
	sdk  *sdk
	tags prometheus.Labels
}

// SDK returns what makes metrics without labels.
func (m *Metrics) SDK() Tagged {
	t := Tagged{sdk: &m.sdk, tags: prometheus.Labels{}}
	for _, label := range labels {
		t.tags[label] = "" // to Prometheus it is not there
	}
	return t
}

// With returns what makes metrics with these values, too, as far as there are labels.
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

// tagsOf returns the values of the labels of a metric.
func (t Tagged) tagsOf(name string) prometheus.Labels {
	tags := prometheus.Labels{}
	for _, label := range labelsOf(name) {
		tags[label] = t.tags[label]
	}
	return tags
}

// lasting returns the name of a task queue without what is new with each start of a host
// worker, or of the SDK.
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

// Counter returns the counter of a name.
func (t Tagged) Counter(name string) prometheus.Counter {
	name = strings.TrimSuffix(name, "_total") + "_total"
	return made(t, name, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help(name)}, labelsOf(name))
	}).With(t.tagsOf(name))
}

// Gauge returns the gauge of a name.
func (t Tagged) Gauge(name string) prometheus.Gauge {
	return made(t, name, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help(name)}, labelsOf(name))
	}).With(t.tagsOf(name))
}

// Timer returns what records a duration under a name.
func (t Tagged) Timer(name string) func(time.Duration) {
	name += "_seconds"
	observer := made(t, name, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help(name), Buckets: times}, labelsOf(name))
	}).With(t.tagsOf(name))
	return func(d time.Duration) { observer.Observe(d.Seconds()) }
}

// made returns the collector of a name. The first one that is made is registered.
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
		return "Runs that have ended, by verdict and cause."
	case spec.MetricQueueWait + "_seconds":
		return "Time from the start of a run until all its tasks were placed."
	case runsOpen:
		return "Runs of the queue that have not ended, as the server last said."
	}
	return "See the documentation of Temporal's SDK."
}
