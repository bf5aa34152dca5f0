package closure

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Tasks of a run usually serve the same functions. Long lists are written once: a message, or
// the answer to a query, takes 2 MiB.

// maxPlainLists is the most bytes that the lists of all tasks may have together before equal
// ones are written once. Shorter ones stay with their tasks, which is easier to read.
const maxPlainLists = 256 << 10

// listed is a task with a list of functions.
type listed interface {
	// functions returns the list, and its place in the result of splitLists, from 1.
	functions() (task string, list *[]string, place *int)
}

func (t *ServingTask) functions() (string, *[]string, *int)  { return t.Task, &t.Functions, &t.List }
func (w *WorkerStatus) functions() (string, *[]string, *int) { return w.Task, &w.Functions, &w.List }

// MarshalJSON writes equal lists of functions once if they are long.
func (m ServingMessage) MarshalJSON() ([]byte, error) {
	type plain ServingMessage
	m.Serving, m.Lists = splitLists[ServingTask, *ServingTask](m.Serving)
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
	return joinLists[ServingTask, *ServingTask](m.Serving, lists)
}

// MarshalJSON writes equal lists of functions once if they are long.
func (s QueueStatus) MarshalJSON() ([]byte, error) {
	type plain QueueStatus
	s.Workers, s.Lists = splitLists[WorkerStatus, *WorkerStatus](s.Workers)
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
	return joinLists[WorkerStatus, *WorkerStatus](s.Workers, lists)
}

type listedPointer[T any] interface {
	*T
	listed
}

// splitLists returns a copy of the tasks without their lists of functions, and the lists,
// each once. Tasks with short lists are returned as they are.
func splitLists[T any, P listedPointer[T]](tasks []T) ([]T, [][]string) {
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

// joinLists is the inverse of splitLists. The tasks share the lists.
func joinLists[T any, P listedPointer[T]](tasks []T, lists [][]string) error {
	for i := range tasks {
		task, list, place := P(&tasks[i]).functions()
		switch {
		case *place == 0:
			continue
		case *place < 0 || *place > len(lists):
			return fmt.Errorf("task %s refers to list %d of functions, but only %d exist", task, *place, len(lists))
		}
		*list, *place = lists[*place-1], 0
	}
	return nil
}
