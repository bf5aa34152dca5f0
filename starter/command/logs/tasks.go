package logs

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks finds a run's tasks by rank, including those added later, and their output's prefixes.
type Tasks struct {
	own string // the name of this host
	// ask returns the run's status, for a rank that is unknown. It may be nil.
	ask func(context.Context) (*starter.Status, error)

	mu    sync.Mutex
	tasks map[int]spec.PrefixFields
	tee   map[int]spec.Std // the shown streams, by rank
}

// TasksOf returns the tasks of this command's own run.
func TasksOf(run *starter.Run, s *spec.RunSpec) *Tasks {
	own, _ := os.Hostname() // empty if the machine does not have a name
	x := &Tasks{own: own, ask: run.Status, tasks: map[int]spec.PrefixFields{}}
	on := map[string]int{} // number of tasks by host
	for _, t := range s.TaskList() {
		host, _, err := spec.SplitAddress(t.Address)
		if err != nil || spec.IsLoopback(host) {
			host = own
		}
		x.tasks[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index, Rank: t.Rank, LocalRank: on[host], Host: host}
		on[host]++
	}
	return x
}

// learn replaces the tasks with those of a status.
func (x *Tasks) learn(s *starter.Status) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tasks, x.tee = map[int]spec.PrefixFields{}, nil
	on := map[string]int{}
	for _, t := range slices.SortedFunc(slices.Values(s.Tasks), func(a, b starter.TaskStatus) int { return a.Rank - b.Rank }) {
		x.tasks[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index, Rank: t.Rank, LocalRank: on[t.Host], Host: t.Host}
		on[t.Host]++
	}
}

// add adds tasks that this command's run has started later. Each counts as a task on this host,
// with its rank as local rank. x.mu must be held.
func (x *Tasks) add(s *starter.Status) {
	for _, t := range s.Tasks {
		if _, ok := x.tasks[t.Rank]; !ok {
			x.tasks[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index, Rank: t.Rank, LocalRank: t.Rank, Host: x.own}
		}
	}
}

// Len returns the number of known tasks.
func (x *Tasks) Len() int { return len(x.tasks) }

// task returns the task with the given rank. If the rank is unknown, the task's type is "rank".
func (x *Tasks) task(rank int) spec.PrefixFields {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.tasks[rank]; !ok && x.ask != nil {
		ctx, cancel := context.WithTimeout(context.Background(), cli.RequestTimeout)
		defer cancel()
		if s, err := x.ask(ctx); err == nil {
			x.add(s)
		}
	}
	if t, ok := x.tasks[rank]; ok {
		return t
	}
	return spec.PrefixFields{Type: "rank", Index: rank, Rank: rank, LocalRank: rank, Host: x.own}
}

// Name returns the name of the task with the given rank.
func (x *Tasks) Name(rank int) string {
	t := x.task(rank)
	return spec.TaskName(t.Type, t.Index)
}

// Prefixes returns a function that returns the line prefix of a process. If the format is nil,
// it is the default.
func (x *Tasks) Prefixes(format *string) (func(rank, attempt int) string, error) {
	parsed, err := spec.ParsePrefix(format)
	return func(rank, attempt int) string {
		t := x.task(rank)
		t.Attempt = attempt
		return parsed.Format(t)
	}, err
}

// Shown returns a function that reports whether a stream is shown, by the run's spec. If the run
// is this command's, other hosts' streams are also shown if they would be written directly to our
// output on this host.
func (x *Tasks) Shown(s *spec.RunSpec) func(tasklog.Stream) bool {
	return func(st tasklog.Stream) bool {
		t := x.task(st.Rank)
		x.mu.Lock()
		defer x.mu.Unlock()
		shown, ok := x.tee[st.Rank]
		if !ok {
			streams := s.StreamsOf(spec.Task{Type: t.Type, Index: t.Index, Rank: t.Rank}, t.LocalRank)
			if shown = streams.Tee; x.ask != nil && t.Host != x.own {
				shown |= streams.Console
			}
			if x.tee == nil {
				x.tee = map[int]spec.Std{}
			}
			x.tee[st.Rank] = shown
		}
		if st.Stderr {
			return shown.Err()
		}
		return shown.Out()
	}
}
