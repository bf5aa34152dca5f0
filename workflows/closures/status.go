package closures

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Status is the queue for people. Its one execution is this one, without its run ID
// and without those before it, of which only the workflow knows.
func (q *Queue) Status() spec.QueueStatus {
	s := spec.QueueStatus{
		State: q.state(), Paused: q.reason, Error: q.fault, Counts: q.counts, Workers: []spec.WorkerStatus{},
		Executions: []spec.QueueExecution{{First: q.firstEnded, Last: q.lastEnded}},
	}
	s.Counts.Queued, s.Counts.Executing = q.queued, q.executing
	s.Counts.Bytes, s.Counts.Resource = q.bytes, len(q.resources.list)
	for _, h := range q.hosts {
		for _, t := range h.serving {
			s.Workers = append(s.Workers, spec.WorkerStatus{
				Task: t.Task, Host: h.name, Serving: !h.doubted, Slots: t.Slots, Functions: t.Functions,
			})
		}
	}
	slices.SortStableFunc(s.Workers, compareWorkers)
	return s
}

func (q *Queue) state() spec.QueueState {
	switch {
	case q.ended != "":
		return spec.QueueEnded
	case q.drain != nil:
		return spec.QueueDraining
	case q.fault != nil:
		return spec.QueueFailed
	case q.paused:
		return spec.QueuePaused
	}
	return spec.QueueOpen
}

// compareWorkers puts worker-2 before worker-10.
func compareWorkers(a, b spec.WorkerStatus) int {
	aType, aIndex, _ := spec.ParseTaskName(a.Task)
	bType, bIndex, _ := spec.ParseTaskName(b.Task)
	return cmp.Or(cmp.Compare(aType, bType), cmp.Compare(aIndex, bIndex), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Host, b.Host))
}
