package rules

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Status returns the status of the queue. Its only execution is the present one, without a run
// ID: the workflow knows the earlier ones.
func (q *Queue) Status() closure.QueueStatus {
	return closure.QueueStatus{
		State: q.State(), Error: q.fault, Counts: q.Counts(), Workers: q.sortedWorkers(),
		Executions: []closure.QueueExecution{{First: q.firstEnded, Last: q.lastEnded}},
	}
}

// Counts returns the counts of the closures.
func (q *Queue) Counts() closure.QueueCounts {
	c := q.counts
	c.Queued, c.Executing = q.queued.all, q.executing.all
	c.Bytes, c.Resource = q.bytes, len(q.resources.list)
	return c
}

// sortedWorkers returns the serving tasks. They are kept until one changes, because the
// status is read with each change of the queue, and there may be thousands of tasks.
func (q *dispatcher) sortedWorkers() []closure.WorkerStatus {
	if q.workers == nil {
		q.workers = []closure.WorkerStatus{}
		for _, h := range q.hosts {
			for _, t := range h.serving {
				q.workers = append(q.workers, closure.WorkerStatus{
					Task: t.Task, Host: h.name, Serving: !h.doubted, Slots: t.Slots, Functions: t.Functions,
				})
			}
		}
		slices.SortStableFunc(q.workers, compareWorkers)
	}
	return slices.Clone(q.workers)
}

// doubt records whether a lease of a host was lost since its last message.
func (q *dispatcher) doubt(h *host, doubted bool) {
	if h.doubted != doubted {
		h.doubted, q.workers = doubted, nil
	}
}

// State returns the state of the queue.
func (q *Queue) State() closure.QueueState {
	switch {
	case q.ended != "":
		return closure.QueueEnded
	case q.drain != nil:
		return closure.QueueDraining
	case q.fault != nil:
		return closure.QueueFailed
	}
	return closure.QueueOpen
}

// compareWorkers puts worker-2 before worker-10.
func compareWorkers(a, b closure.WorkerStatus) int {
	aType, aIndex, _ := spec.ParseTaskName(a.Task)
	bType, bIndex, _ := spec.ParseTaskName(b.Task)
	return cmp.Or(cmp.Compare(aType, bType), cmp.Compare(aIndex, bIndex), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Host, b.Host))
}
