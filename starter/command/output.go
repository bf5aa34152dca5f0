package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// voice is where our own messages go: straight to stderr, or through a console
// that keeps them out of the lines of programs and of its status line.
type voice struct {
	mu      sync.Mutex
	console *tasklog.Console
}

func (v *voice) through(c *tasklog.Console) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.console = c
}

func (v *voice) println(w io.Writer, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	// A console stops at the first output that is broken, which may be the other one.
	if v.console != nil && v.console.Err() == nil {
		v.console.Println(text)
		return
	}
	fmt.Fprintln(w, text)
}

// output shows what the processes of a run write, and how it is doing.
type output struct {
	app     *app
	run     *starter.Run
	console *tasklog.Console
	follow  *tasklog.Follower // nil where nothing is shown
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// statusEvery is how often the status line is made anew.
const statusEvery = time.Second

// show starts to show the output of a run on this machine.
func (a *app) show(run *starter.Run, s *spec.RunSpec, quiet bool) (*output, error) {
	s = s.WithDefaults()
	labels, err := newLabels(run, s)
	if err != nil {
		return nil, err
	}
	selected, err := selection(s)
	if err != nil {
		return nil, err
	}
	stdout := a.out
	if a.global.json {
		stdout = a.err // stdout is for the result alone
	}
	status := false
	if f, ok := a.err.(*os.File); ok && !a.noStatus {
		status = tasklog.IsTerminal(f)
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &output{app: a, run: run, stop: stop}
	o.console = tasklog.NewConsole(stdout, a.err, tasklog.ConsoleOptions{Prefix: labels.prefix, Status: status})
	a.voice.through(o.console)
	if quiet {
		return o, nil
	}
	dir := tasklog.RunDir(logRoot(a, s), run.ID, run.ExecutionID)
	a.say("%s", a.color.dim(fmt.Sprintf("run %s: %s, in %s; logs in %s", run.ID, groups(s), s.Dir, dir)))
	o.follow = tasklog.Follow(dir, o.console.Deliver, tasklog.FollowOptions{
		Select:  selected,
		OnError: func(err error) { a.say("%s", err) },
	})
	if status {
		o.done.Go(func() { o.keepStatus(ctx) })
	}
	return o, nil
}

func logRoot(a *app, s *spec.RunSpec) string {
	if s.Logs.Dir != "" {
		return s.Logs.Dir
	}
	return a.logsDir()
}

// groups says "chief=1 worker=3".
func groups(s *spec.RunSpec) string {
	var list []string
	for _, g := range s.Tasks {
		list = append(list, fmt.Sprintf("%s=%d", g.Type, g.Size()))
	}
	return strings.Join(list, " ")
}

// finish shows what is left of the output and gives the terminal back. It takes
// as long as whoever reads our output does, unless a signal comes.
func (o *output) finish(signals <-chan os.Signal) {
	o.stop()
	o.done.Wait()
	if o.follow != nil {
		ctx, cancel := context.WithCancel(context.Background())
		drained := make(chan struct{})
		go func() {
			select {
			case <-signals:
				cancel()
			case <-drained:
			}
		}()
		_ = o.follow.Stop(ctx)
		close(drained)
		cancel()
	}
	o.app.voice.through(nil)
	_ = o.console.Close()
}

// keepStatus keeps the status line: how many tasks are in which state.
func (o *output) keepStatus(ctx context.Context) {
	started := time.Now()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	text := ""
	for {
		select {
		case <-ctx.Done():
			o.console.SetStatus("")
			return
		case <-tick.C:
		}
		if s, err := o.run.Status(ctx); err == nil && !s.Unanswered {
			text = counts(s)
		}
		if ctx.Err() == nil {
			o.console.SetStatus(fmt.Sprintf("%s · %s · %s", o.run.ID, text, time.Since(started).Round(time.Second)))
		}
	}
}

// counts says "3 running, 1 ended".
func counts(s *starter.Status) string {
	number := map[string]int{}
	for _, t := range s.Tasks {
		state := string(t.State)
		if !t.NextStart.IsZero() {
			state = "restarting"
		}
		number[state]++
	}
	var parts []string
	for _, state := range []string{string(spec.TaskPending), string(spec.TaskRunning), "restarting", string(spec.TaskStopping), string(spec.TaskEnded)} {
		if n := number[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(parts) == 0 {
		return string(s.State)
	}
	return strings.Join(parts, ", ")
}

// labels makes the starts of lines.
type labels struct {
	run    *starter.Run
	format spec.Prefix
	host   string

	mu    sync.Mutex
	tasks map[int]spec.PrefixFields // by rank
}

func newLabels(run *starter.Run, s *spec.RunSpec) (*labels, error) {
	format, err := spec.ParsePrefix(s.Logs.Prefix)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the name of this machine: %w", err)
	}
	l := &labels{run: run, format: format, host: host, tasks: map[int]spec.PrefixFields{}}
	for _, t := range s.TaskList() {
		l.tasks[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index, Rank: t.Rank, LocalRank: t.Rank, Host: host}
	}
	return l, nil
}

// prefix is the start of the lines of one process.
func (l *labels) prefix(rank, attempt int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.tasks[rank]
	if !ok {
		f = l.lookUp(rank)
	}
	f.Attempt = attempt
	return l.format.Format(f)
}

// lookUp asks the run for a task that was added while it lives.
func (l *labels) lookUp(rank int) spec.PrefixFields {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if s, err := l.run.Status(ctx); err == nil {
		for _, t := range s.Tasks {
			l.tasks[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index, Rank: t.Rank, LocalRank: t.Rank, Host: l.host}
		}
	}
	if f, ok := l.tasks[rank]; ok {
		return f
	}
	return spec.PrefixFields{Type: "rank", Index: rank, Rank: rank, LocalRank: rank, Host: l.host}
}

// selection says which streams are shown: those that tee names, and those that
// are not redirected to files, which is torch's meaning of the two.
func selection(s *spec.RunSpec) (func(tasklog.Stream) bool, error) {
	tee, err := spec.ParseStd(s.Logs.Tee)
	if err != nil {
		return nil, err
	}
	redirects, err := spec.ParseStd(s.Logs.Redirects)
	if err != nil {
		return nil, err
	}
	only := map[int]bool{}
	for _, r := range s.Logs.LocalRanksFilter {
		only[r] = true
	}
	return func(st tasklog.Stream) bool {
		if len(only) > 0 && !only[st.Rank] {
			return false
		}
		t, r := tee.Of(st.Rank), redirects.Of(st.Rank)
		if st.Stderr {
			return t.Err() || !r.Err()
		}
		return t.Out() || !r.Out()
	}, nil
}
