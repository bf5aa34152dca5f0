package taskservices

import (
	"maps"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
)

// noteServing notes that a process of a task serves, before the process is given anything. If
// it exits with 0 while there is no host worker, the exit must not count as completed, because
// it is unknown what the process was calling.
func (b *Brokers) noteServing(run Run, task string, s *closures.Broker) {
	if run.Serving[task] == s.Life {
		return
	}
	_, err := b.Plans.Note(run.Key, func(n *Notes) {
		n.Serving = cloned(n.Serving)
		n.Serving[task] = s.Life
	})
	if err != nil {
		b.Log.Warn("a serving task could not be recorded; if it exits with 0 while this host worker is down, it counts as completed", zap.Error(err))
	}
}

// noteLeft notes that the last serving process of a task has left.
func (b *Brokers) noteLeft(key runkey.Run, task string) {
	if run, ok := b.here(key); !ok || run.Serving[task] == "" {
		return
	}
	if _, err := b.Plans.Note(key, func(n *Notes) { n.left(task) }); err != nil {
		b.Log.Warn("a task that stopped serving could not be recorded; if it exits with 0, it may be restarted", zap.Error(err))
	}
}

// left notes that a task no longer serves.
func (n *Notes) left(task string) {
	n.Serving = cloned(n.Serving)
	delete(n.Serving, task)
}

// cloned returns a copy that can be changed.
func cloned[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
