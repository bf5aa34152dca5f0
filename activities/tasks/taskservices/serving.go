package taskservices

import (
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
)

// noteServing notes that a process of a task serves, before the process is given anything. If
// it exits with 0 while there is no host worker, the exit must not count as completed, because
// it is unknown what the process was calling. The next broker must also know which processes to
// wait for. A process that cannot be noted is therefore given nothing, and asks again.
func (b *Brokers) noteServing(run Run, task, process string, s *closures.Broker) error {
	known := slices.Contains(run.Servers[task], process)
	if known && run.Serving[task] == s.Life {
		return nil
	}
	_, err := b.Plans.Note(run.Key, func(n *Notes) {
		n.serves(task, process, s.Life, func(p string) bool { return s.IsGone(task, p) })
	})
	switch {
	case err == nil:
		return nil
	case !known:
		b.Log.Warn("a serving process cannot be recorded and gets no calls; it will ask again", zap.String("task", task), zap.Error(err))
		return taskapi.ErrClosuresAway
	}
	b.Log.Warn("a serving task could not be recorded; if it exits with 0 while this host worker is down, it counts as completed", zap.Error(err))
	return nil
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

// servers returns the processes that may have been given closures, by task. The list of a
// task is empty if its processes are unknown.
func (n *Notes) servers() map[string][]string {
	all := map[string][]string{}
	for task := range n.Serving {
		all[task] = n.Servers[task]
	}
	return all
}

// serves notes that a process of a task serves, and the life of the broker that it has asked.
// It drops the processes of the task that are gone.
func (n *Notes) serves(task, process, life string, gone func(process string) bool) {
	others := slices.DeleteFunc(slices.Clone(n.Servers[task]), func(p string) bool {
		return p == process || gone(p)
	})
	n.Serving, n.Servers = cloned(n.Serving), cloned(n.Servers)
	n.Serving[task] = life
	n.Servers[task] = append(others, process)
}

// left notes that a task no longer serves.
func (n *Notes) left(task string) {
	n.Serving, n.Servers = cloned(n.Serving), cloned(n.Servers)
	delete(n.Serving, task)
	delete(n.Servers, task)
}

// cloned returns a copy that can be changed.
func cloned[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
