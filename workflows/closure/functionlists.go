package closure

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Tasks of a run usually serve the same functions. Where their lists are long they are
// written once: a message, or the answer to a query, takes 2 MiB.

// maxPlainLists is how many bytes the lists of all tasks may have together before those
// that are alike are written once. Shorter ones stay with their tasks, for people to read.
const maxPlainLists = 256 << 10

// listed is a task with a list of functions.
type listed interface {
	// functions are the list, and its place among those that are written apart, from 1.
	functions() (task string, list *[]string, place *int)
}

func (t *ServingTask) functions() (string, *[]string, *int)  { return t.Task, &t.Functions, &t.List }
func (w *WorkerStatus) functions() (string, *[]string, *int) { return w.Task, &w.Functions, &w.List }

// MarshalJSON writes lists of functions once where they are long.
func (m ServingMessage) MarshalJSON() ([]byte, error) {
	type plain ServingMessage
	m.Serving, m.Lists = apart[ServingTask, *ServingTask](m.Serving)
	return json.Marshal(plain(m))
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (m *ServingMessage) UnmarshalJSON(text []byte) error {
	type plain ServingMessage
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	lists := m.Lists
	m.Lists = nil
	return together[ServingTask, *ServingTask](m.Serving, lists)
}

// MarshalJSON writes lists of functions once where they are long.
func (s QueueStatus) MarshalJSON() ([]byte, error) {
	type plain QueueStatus
	s.Workers, s.Lists = apart[WorkerStatus, *WorkerStatus](s.Workers)
	return json.Marshal(plain(s))
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *QueueStatus) UnmarshalJSON(text []byte) error {
	type plain QueueStatus
	if err := json.Unmarshal(text, (*plain)(s)); err != nil {
		return err
	}
	lists := s.Lists
	s.Lists = nil
	return together[WorkerStatus, *WorkerStatus](s.Workers, lists)
}

type listedPointer[T any] interface {
	*T
	listed
}

// apart takes the lists out of the tasks, of which it makes a copy, unless they are short.
func apart[T any, P listedPointer[T]](tasks []T) ([]T, [][]string) {
	size := 0
	for i := range tasks {
		_, list, _ := P(&tasks[i]).functions()
		for _, f := range *list {
			size += len(f)
		}
	}
	if size <= maxPlainLists {
		return tasks, nil
	}
	var lists [][]string
	places := map[string]int{}
	short := make([]T, len(tasks))
	for i, t := range tasks {
		_, list, place := P(&t).functions()
		if len(*list) > 0 {
			key := strings.Join(*list, "\x00")
			if places[key] == 0 {
				lists = append(lists, *list)
				places[key] = len(lists)
			}
			*place, *list = places[key], nil
		}
		short[i] = t
	}
	return short, lists
}

// together is its inverse. The tasks share the lists.
func together[T any, P listedPointer[T]](tasks []T, lists [][]string) error {
	for i := range tasks {
		task, list, place := P(&tasks[i]).functions()
		switch {
		case *place == 0:
			continue
		case *place < 0 || *place > len(lists):
			return fmt.Errorf("task %s has list %d of functions, and there are %d", task, *place, len(lists))
		}
		*list, *place = lists[*place-1], 0
	}
	return nil
}
