package taskservices

import (
	"maps"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
)

// noteServing records that a task's process serves, before the process receives anything. If the
// process exits with 0 while no host worker runs, the exit must not count as completed, because it
// is unknown what the process was calling.
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

// noteLeft records that a task's last serving process has left.
func (b *Brokers) noteLeft(key runkey.Run, task string) {
	if run, ok := b.here(key); !ok || run.Serving[task] == "" {
		return
	}
	if _, err := b.Plans.Note(key, func(n *Notes) { n.left(task) }); err != nil {
		b.Log.Warn("a task that stopped serving could not be recorded; if it exits with 0, it may be restarted", zap.Error(err))
	}
}

// left records that a task no longer serves.
func (n *Notes) left(task string) {
	n.Serving = cloned(n.Serving)
	delete(n.Serving, task)
}

// cloned returns a mutable copy of m.
func cloned[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
