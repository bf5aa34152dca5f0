package rules

import (
	"cmp"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Status returns the queue's status.
func (q *Queue) Status() closure.QueueStatus {
	s := closure.QueueStatus{State: closure.QueueOpen, Error: q.Fault, Counts: q.Counts, Workers: []closure.WorkerStatus{}}
	switch {
	case q.ended != "":
		s.State = closure.QueueEnded
	case q.Drain != "":
		s.State = closure.QueueDraining
	case q.Fault != nil:
		s.State = closure.QueueFailed
	}
	s.Counts.Queued, s.Counts.Bytes = len(q.Waiting), q.bytes
	for _, b := range q.Batches {
		s.Counts.Executing += len(b.Items)
	}
	for _, h := range q.Hosts {
		for _, t := range h.Tasks {
			s.Workers = append(s.Workers, closure.WorkerStatus{Task: t.Task, Host: h.Name, Slots: t.Slots})
		}
	}
	slices.SortFunc(s.Workers, func(a, b closure.WorkerStatus) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Host, b.Host))
	})
	return s
}

// Ended reports whether the queue has ended.
func (q *Queue) Ended() bool { return q.ended != "" }
