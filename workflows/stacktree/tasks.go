package stacktree

// Task describes a rank without its stack.
type Task struct {
	Rank  int
	Host  string
	Ended bool
}

// WithMissing adds the tasks that the tree lacks, with the reason why they have no stack: the
// others may wait for a task that has ended.
func WithMissing(t Tree, tasks []Task) Tree {
	known := t.Ranks()
	trees := []Tree{t}
	for _, task := range tasks {
		if known.Has(task.Rank) {
			continue
		}
		frame := Frame{Kind: Unknown, Function: "has no process"}
		if task.Ended {
			frame = Frame{Kind: Ended, Function: "has ended"}
		}
		trees = append(trees, Of(task.Rank, Stack{frame}))
	}
	return Merge(trees...)
}

// HostOf returns a function that returns the host of a rank, or "" if all tasks are on one.
func HostOf(tasks []Task) func(rank int) string {
	hosts, different := map[int]string{}, map[string]bool{}
	for _, task := range tasks {
		hosts[task.Rank], different[task.Host] = task.Host, true
	}
	return func(rank int) string {
		if len(different) < 2 {
			return ""
		}
		return hosts[rank]
	}
}
