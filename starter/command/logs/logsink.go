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

// sink sets what shows the lines, and returns what ends that.
func (l *Reader) sink() (finish func() error, err error) {
	if l.asJSON() {
		lines := tasklog.NewJSONLines(l.Out, l.tasks.name)
		l.Deliver = lines.Deliver
		return lines.Close, nil
	}
	out := l.Out
	var prefix *string
	var o tasklog.ConsoleOptions
	if l.Spec != nil {
		prefix, o.Timestamps, o.Shared = l.Spec.Logs.Prefix, l.Spec.Logs.Timestamps, l.NoStatus
		if l.Global.JSON {
			out = l.Err // stdout is for the result alone
		}
	}
	format, err := spec.ParsePrefix(prefix)
	if err != nil {
		return nil, err
	}
	o.Prefix = func(rank, attempt int) string { return format.Format(l.tasks.fields(rank, attempt)) }
	console := tasklog.NewConsole(out, l.Err, o)
	l.Deliver = console.Deliver
	l.Printer.Through(console)
	finish = func() error {
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
			console.Deliver(c)
		}
	}
	return finish, nil
}

// placedTasks knows the tasks of a run by rank, and where they are.
type placedTasks struct {
	mu    sync.Mutex
	tasks map[int]spec.PrefixFields
	// latest are the last processes that have written something, by rank.
	latest map[int]int
}

// learn takes over what a run says of its tasks.
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

// fields returns what the lines of a process may begin with. Where nobody knows its task,
// the type of that is "rank".
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

// name returns the name of the task with that rank.
func (p *placedTasks) name(rank int) string {
	f := p.fields(rank, 0)
	return spec.TaskName(f.Type, f.Index)
}

// isNext reports whether output of a process of a task is the first one after that of
// another.
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
