package closures

import "container/heap"

// queue holds the waiting closures, in a line for each function and, for closures that only one
// task may call, each task. Lines are never empty.
type queue struct {
	lines map[lineKey]*line
	size  int
}

type lineKey struct {
	function string
	// task is the only task that may call it. If empty, all may.
	task string
}

// line is a heap, ordered by ID, which is the order of scheduling. A closure that is put
// back is therefore in front again.
type line struct {
	key     lineKey
	entries []*entry
}

func (l *line) Len() int { return len(l.entries) }

func (l *line) Less(i, j int) bool { return before(l.entries[i], l.entries[j]) }

func (l *line) Swap(i, j int) {
	l.entries[i], l.entries[j] = l.entries[j], l.entries[i]
	l.entries[i].index, l.entries[j].index = i, j
}

func (l *line) Push(x any) {
	e := x.(*entry)
	e.index = len(l.entries)
	l.entries = append(l.entries, e)
}

func (l *line) Pop() any {
	last := len(l.entries) - 1
	e := l.entries[last]
	l.entries[last] = nil
	l.entries = l.entries[:last]
	return e
}

// before reports whether closure a must be called before closure b.
func before(a, b *entry) bool { return a.closure.ID < b.closure.ID }

func keyOf(e *entry) lineKey { return lineKey{e.closure.Function, e.options().Task} }

func (q *queue) push(e *entry) {
	key := keyOf(e)
	l := q.lines[key]
	if l == nil {
		if q.lines == nil {
			q.lines = map[lineKey]*line{}
		}
		l = &line{key: key}
		q.lines[key] = l
	}
	heap.Push(l, e)
	q.size++
}

// remove removes a closure from the queue.
func (q *queue) remove(e *entry) {
	l := q.lines[keyOf(e)]
	heap.Remove(l, e.index)
	q.size--
	if len(l.entries) == 0 {
		delete(q.lines, l.key)
	}
}
