package taskservices

import (
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/taskapi"
)

// noteServing notes that a process of a task serves, before it is given anything. A process
// that exits with 0 while no host worker is there must not read as completed: nobody is left
// who knows what it was calling. And the next broker has to know whom to wait for, so a
// process that cannot be noted is given nothing: it asks again.
func (b *Brokers) noteServing(run Run, task, process string, s *Broker) error {
	known := slices.Contains(run.Servers[task], process)
	if known && run.Serving[task] == s.life {
		return nil
	}
	_, err := b.Plans.Note(run.Key, func(n *Notes) {
		n.serves(task, process, s.life, func(p string) bool { return s.IsGone(task, p) })
	})
	switch {
	case err == nil:
		return nil
	case !known:
		b.Log.Warn("a process that serves closures cannot be noted and is given none; it asks again", zap.String("task", task), zap.Error(err))
		return taskapi.ErrClosuresAway
	}
	b.Log.Warn("that a task serves closures is not noted; should it exit with 0 while this host worker is down, it counts as completed", zap.Error(err))
	return nil
}

// noteLeft notes that the last process of a task that served has left.
func (b *Brokers) noteLeft(run Run, task string) {
	if _, err := b.Plans.Note(run.Key, func(n *Notes) { n.left(task) }); err != nil {
		b.Log.Warn("that a task serves closures no more is not noted; should it exit with 0, it may be started again", zap.Error(err))
	}
}

// servers returns the processes that may have been given closures, by task: none where
// nobody has noted which.
func (n *Notes) servers() map[string][]string {
	all := map[string][]string{}
	for task := range n.Serving {
		all[task] = n.Servers[task]
	}
	return all
}

// serves notes that a process of a task serves, and whom it has asked, beside others that
// are not gone.
func (n *Notes) serves(task, process, life string, gone func(process string) bool) {
	others := slices.DeleteFunc(slices.Clone(n.Servers[task]), func(p string) bool {
		return p == process || gone(p)
	})
	n.Serving, n.Servers = cloned(n.Serving), cloned(n.Servers)
	n.Serving[task] = life
	n.Servers[task] = append(others, process)
}

// left notes that a task serves no more.
func (n *Notes) left(task string) {
	n.Serving, n.Servers = cloned(n.Serving), cloned(n.Servers)
	delete(n.Serving, task)
	delete(n.Servers, task)
}

// cloned returns a copy that can be written to.
func cloned[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
