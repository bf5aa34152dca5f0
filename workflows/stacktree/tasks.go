package stacktree

// Task describes a rank, without its stack.
type Task struct {
	Rank  int
	Host  string
	Ended bool
}

// WithMissing adds tasks that are missing from the tree, with the reason, because other tasks may
// be waiting for a task that has ended.
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

// HostOf returns a function that returns a rank's host, or "" if all tasks are on one host.
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
