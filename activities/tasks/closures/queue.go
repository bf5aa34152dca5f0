package closures

import (
	"cmp"
	"slices"
)

// queue holds the waiting closures, in a line for each function and, for closures that only one
// task may call, each task. Lines are never empty. They are in the order of IDs, which is the
// order of scheduling, so a closure that is put back is in front again.
type queue struct {
	lines map[lineKey][]*entry
	size  int
}

type lineKey struct {
	function string
	// task is the only task that may call it. If empty, all may.
	task string
}

func keyOf(e *entry) lineKey { return lineKey{e.closure.Function, e.closure.Task} }

func byID(a, b *entry) int { return cmp.Compare(a.closure.ID, b.closure.ID) }

func (q *queue) push(e *entry) {
	if q.lines == nil {
		q.lines = map[lineKey][]*entry{}
	}
	key := keyOf(e)
	at, _ := slices.BinarySearchFunc(q.lines[key], e, byID)
	q.lines[key] = slices.Insert(q.lines[key], at, e)
	q.size++
}

// remove removes a closure from the queue.
func (q *queue) remove(e *entry) {
	key := keyOf(e)
	line := q.lines[key]
	if at, _ := slices.BinarySearchFunc(line, e, byID); at == 0 {
		line = line[1:]
	} else {
		line = slices.Delete(line, at, at+1)
	}
	q.size--
	if q.lines[key] = line; len(line) == 0 {
		delete(q.lines, key)
	}
}
