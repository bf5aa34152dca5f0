package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxLostOn bounds the tasks that are kept for a closure.
const maxLostOn = 5

// lost records that a process ended before its call. A closure that ends one process after
// another becomes an error: it would stop the whole run.
func (q *Queue) lost(it *item, o closure.Outcome) {
	if !o.Started {
		q.putBack(it)
		return
	}
	it.losses++
	if o.Task != "" && !slices.Contains(it.lostOn, o.Task) {
		it.lostOn = append(it.lostOn, o.Task)
		it.lostOn = it.lostOn[max(0, len(it.lostOn)-maxLostOn):]
	}
	most := closure.MaxLosses
	if it.Task != "" {
		most = 0
	}
	if it.losses <= most || it.told || q.fault != nil && !it.detached() {
		q.putBack(it)
		return
	}
	q.giveUp(it, &closure.Error{Kind: closure.ErrQuarantined, Task: o.Task, Message: fmt.Sprintf(
		"closure %d (%s) is no longer retried: %s ended while executing it%s",
		it.ID, it.Function, plural.Of(it.losses, "process", "processes"), on(it.lostOn))})
}

func on(tasks []string) string {
	if len(tasks) == 0 {
		return ""
	}
	return " on " + strings.Join(tasks, ", ")
}

// peers counts the reports that a task which closures need, such as a parameter server, does
// not answer.
type peers []report

type report struct {
	Task  string `json:"task"`
	Times int    `json:"times"`
}

// maxPeers bounds the tasks that are counted, and maxPeer the bytes of a name, which may be
// anything that a function has raised.
const (
	maxPeers = 1000
	maxPeer  = 40
)

// count adds a report for a task and returns the number of its reports. Reports that name no
// task count together. TensorFlow ignores them, so a closure with such an error is called again
// without end.
func (p *peers) count(task string) int {
	task = peer(task)
	at := slices.IndexFunc(*p, func(r report) bool { return r.Task == task })
	if at < 0 {
		if len(*p) >= maxPeers {
			*p = slices.Delete(*p, 0, 1)
		}
		at = len(*p)
		*p = append(*p, report{Task: task})
	}
	(*p)[at].Times++
	return (*p)[at].Times
}

// peer returns the name under which a task is counted. Names of tasks are short. Longer
// names count together if they begin alike and have the same length.
func peer(task string) string {
	if len(task) <= maxPeer {
		return task
	}
	return fmt.Sprintf("%s… (%d)", shorten.Head(task, maxPeer), len(task))
}

// raised forgets the reports of the task that made the queue's error. In TensorFlow counts
// never go back, but they do not outlive the error: after it, the program must make a new
// coordinator, with new counts. The error of a detached closure counts as raised at once.
func (p *peers) raised(fault *closure.Error) {
	if fault.Kind == closure.ErrUnavailable {
		*p = slices.DeleteFunc(*p, func(r report) bool { return r.Task == peer(fault.Task) })
	}
}

// unavailable records that a task which the function needs does not answer. The closure is
// put back until the K-th report of the same task; from then on it is an error.
func (q *Queue) unavailable(it *item, o closure.Outcome) {
	e := errorOf(it, o)
	if o.Error == nil || o.Error.Task == "" {
		e.Task = ""
	}
	times := q.peers.count(e.Task)
	if times < q.config.TransientUnavailable || it.told || q.fault != nil && !it.detached() {
		q.putBack(it)
		return
	}
	e.Kind = closure.ErrUnavailable
	q.giveUp(it, e)
	if it.detached() {
		q.peers.raised(e)
	}
}
