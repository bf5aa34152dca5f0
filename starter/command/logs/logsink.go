package logs

import (
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// asJSON reports whether each line is shown as a JSON object.
func (l *Reader) asJSON() bool { return l.Global.JSON && l.Spec == nil }

// sink sets Deliver, which shows output. finish shows the remaining output.
func (l *Reader) sink() (finish func() error, err error) {
	if l.shared != nil {
		l.Deliver = l.shared.sinkOf(l)
		return func() error { return nil }, nil
	}
	if l.asJSON() {
		lines := tasklog.NewJSONLines(l.Out, func(rank int) (run, task string) { return "", l.tasks.name(rank) })
		l.Deliver = lines.Deliver
		return lines.Close, nil
	}
	out := l.Out
	var prefix *string
	var o tasklog.ConsoleOptions
	if l.Spec != nil {
		prefix, o.Timestamps = l.Spec.Logs.Prefix, l.Spec.Logs.Timestamps
		if l.Global.JSON {
			out = l.Err // stdout only gets the result
		}
	}
	format, err := spec.ParsePrefix(prefix)
	if err != nil {
		return nil, err
	}
	o.Prefix = func(rank, attempt int) string {
		return format.Format(l.tasks.fields(rank, attempt))
	}
	console := tasklog.NewConsole(out, l.Err, o)
	folder := l.Fold.On(console, len(l.tasks.tasks), l.Printer.Flush)
	deliver := console.Deliver
	if folder != nil {
		deliver = folder.Deliver
	}
	l.Deliver = deliver
	l.Printer.Through(console)
	finish = func() error {
		folder.Rest()
		l.Printer.Flush()
		l.Printer.Through(nil)
		return console.Close()
	}
	if l.Spec == nil {
		return finish, nil
	}
	next := Announce(l.App, l.run, l.Spec, l.tasks.name)
	l.Deliver = func(c tasklog.Chunk) {
		if l.tasks.isNext(c.Rank, c.Attempt) {
			next(c.Rank, c.Attempt)
		}
		f := l.tasks.fields(c.Rank, c.Attempt)
		tee := l.Spec.StreamsOf(spec.Task{Type: f.Type, Index: f.Index, Rank: f.Rank}, f.LocalRank).Tee
		if c.Stderr && tee.Err() || !c.Stderr && tee.Out() {
			l.Printer.Flush()
			deliver(c)
		}
	}
	return finish, nil
}

// placedTasks finds a run's tasks, and their hosts, by rank.
type placedTasks struct {
	mu    sync.Mutex
	tasks map[int]spec.PrefixFields
	// latest is the last attempt that has written output, by rank.
	latest map[int]int
}

// learn replaces the tasks with those of a status.
func (p *placedTasks) learn(s *starter.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = map[int]spec.PrefixFields{}
	onHost := map[string]int{}
	for _, t := range slices.SortedFunc(slices.Values(s.Tasks), func(a, b starter.TaskStatus) int { return a.Rank - b.Rank }) {
		p.tasks[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index, Rank: t.Rank, LocalRank: onHost[t.Host], Host: t.Host}
		onHost[t.Host]++
	}
}

// fields returns the fields for a process's prefix. If its task is unknown, the type is "rank".
func (p *placedTasks) fields(rank, attempt int) spec.PrefixFields {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.tasks[rank]
	if !ok {
		f = spec.PrefixFields{Type: "rank", Index: rank, Rank: rank}
	}
	f.Attempt = attempt
	return f
}

// name returns the name of the task with the given rank.
func (p *placedTasks) name(rank int) string {
	f := p.fields(rank, 0)
	return spec.TaskName(f.Type, f.Index)
}

// isNext reports whether this is the first output of a process that follows another process of
// the same task.
func (p *placedTasks) isNext(rank, attempt int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, some := p.latest[rank]
	if some && attempt <= last {
		return false
	}
	if p.latest == nil {
		p.latest = map[int]int{}
	}
	p.latest[rank] = attempt
	return some
}
