package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// output shows a run's output and the status line.
type output struct {
	app     *cli.App
	run     *starter.Run
	console *tasklog.Console
	folder  *tasklog.Folder   // nil if no lines are folded
	follow  *tasklog.Follower // nil if no output is shown
	logs    string            // location of the logs, for messages
	dir     string            // directory of the followed logs; may be empty
	trials  chan struct{}     // closed once the trials of a sweep are shown, or nil for other runs
	ended   context.Context   // when stop was called
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// show starts showing this command's run. If the run lacks a log directory, its output on other
// hosts is copied to the directory spare, unless spare is empty.
func show(a *cli.App, run *starter.Run, s *spec.RunSpec, wanted runOptions, spare string) (*output, error) {
	s = s.WithDefaults()
	tasks := newTaskIndex(run, s)
	prefix, err := tasks.prefixes(s)
	if err != nil {
		return nil, err
	}
	if wanted.sweep != nil {
		prefix = trialPrefix(s)
	}
	stdout := a.Out
	if a.Global.JSON {
		stdout = a.Err // stdout only gets the result
	}
	status := false
	if f := tasklog.FileOf(a.Err); f != nil {
		status = !a.NoStatus && tasklog.IsTerminal(f)
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &output{app: a, run: run, ended: ctx, stop: stop}
	o.console = tasklog.NewConsole(stdout, a.Err, tasklog.ConsoleOptions{
		Prefix: prefix, Timestamps: s.Logs.Timestamps,
	})
	a.Printer.Through(o.console)
	o.folder = wanted.fold.On(o.console, len(tasks.tasks), a.Printer.Flush)
	root := logRoot(a, s)
	if root == spec.NullDir {
		root = spare
	}
	if root != "" {
		o.dir = tasklog.RunDir(root, run.ID, run.ExecutionID)
	}
	if wanted.sweep != nil {
		o.dir = root
	}
	if o.logs = "no logs are kept"; s.Logs.Dir != spec.NullDir {
		o.logs = "logs in " + o.dir
	}
	if wanted.sweep != nil {
		o.trials = make(chan struct{})
		go func() {
			defer close(o.trials)
			o.showTrials(ctx, wanted.sweep, root, wanted.quiet)
		}()
	}
	if wanted.quiet {
		return o, nil
	}
	a.WhenBroken(func(err error) { a.Say("%s; run %s goes on; %s", err, run.ID, o.logs) })
	if !a.Owned && !wanted.torchrun {
		what := fmt.Sprintf("run %s: %s", run.ID, groups(s))
		if wanted.sweep != nil {
			what = fmt.Sprintf("sweep %s: at most %d at once", run.ID, wanted.sweep.AtMost)
		}
		a.Say("%s", a.Color.Dim(fmt.Sprintf("%s, in %s; %s", what, place(s), o.logs)))
	}
	if o.dir != "" && wanted.sweep == nil {
		selected := tasks.selection(s)
		o.follow = tasklog.Follow(o.dir, o.deliver, tasklog.FollowOptions{
			// The foreground task writes to our own stdout and stderr.
			Select: func(st tasklog.Stream) bool {
				return selected(st) && (wanted.foreground == "" || tasks.name(st.Rank) != wanted.foreground)
			},
			OnNext:  logs.Announce(a, run, s, tasks.name),
			OnError: func(err error) { a.Say("%s", err) },
		})
	}
	if status {
		o.done.Go(func() { o.keepStatus(ctx) })
	}
	return o, nil
}

// showUnkept shows output that cannot be logged because the logs' disk is full.
func (o *output) showUnkept(from supervisor.API) {
	if o.follow == nil {
		return
	}
	o.done.Go(func() {
		for pause := cli.DisksEvery; ; pause = min(2*pause, cli.DisksEvery) {
			got, err := from.Unkept(o.ended)
			for _, u := range got.Unkept {
				o.insert(u.Path, u.Data)
			}
			if len(got.Unkept) > 0 {
				pause = 10 * time.Millisecond // its program waits for us
			}
			if err != nil || retry.Sleep(o.ended, pause) != nil {
				return
			}
		}
	})
}

// insert shows output that does not get into its file. It waits for our reader.
func (o *output) insert(path string, data []byte) {
	if o.follow != nil {
		o.follow.Insert(path, data)
	}
}

// place returns the working directory of a run's tasks, for messages.
func place(s *spec.RunSpec) string {
	if s.Ships() && !filepath.IsAbs(s.Dir) {
		return "a copy of " + filepath.Join(s.Ship.Dir, s.Dir)
	}
	return s.Dir
}

// deliver shows a chunk after all earlier messages.
func (o *output) deliver(c tasklog.Chunk) {
	if o.folder != nil {
		o.folder.Deliver(c)
		return
	}
	o.app.Printer.Flush()
	o.console.Deliver(c)
}

func logRoot(a *cli.App, s *spec.RunSpec) string {
	if s.Logs.Dir != "" {
		return s.Logs.Dir
	}
	return a.LogsDir()
}

// groups returns the sizes of the groups, such as "chief=1 worker=3".
func groups(s *spec.RunSpec) string {
	list := list.Of(s.Tasks, func(g spec.TaskGroup) string { return fmt.Sprintf("%s=%d", g.Type, g.Size()) })
	return strings.Join(list, " ")
}

// finish shows the remaining output. It blocks while our output is not being read.
func (o *output) finish() {
	if o.trials != nil {
		<-o.trials
	}
	o.stop()
	o.done.Wait()
	if o.follow != nil {
		_ = o.follow.Stop(context.Background())
	}
	o.folder.Rest()
	o.app.Printer.Flush()
	o.app.Printer.Through(nil)
	o.app.WhenBroken(nil)
	_ = o.console.Close() // the outlets remember errors
}

// keepStatus updates the status line with the number of tasks in each state.
func (o *output) keepStatus(ctx context.Context) {
	started := time.Now()
	tick := time.NewTicker(report.StatusEvery)
	defer tick.Stop()
	var facts []outcome.Fact
	for {
		select {
		case <-ctx.Done():
			o.console.SetStatus("")
			return
		case <-tick.C:
		}
		if s, err := o.run.Status(ctx); err == nil && !s.Unanswered {
			facts = s.Facts
		}
		if ctx.Err() == nil {
			o.console.SetStatus(report.LiveLine(o.run.ID, facts, started))
		}
	}
}

// taskIndex finds a run's tasks by rank, including those added later.
type taskIndex struct {
	run *starter.Run
	own string // the name of this host

	mu    sync.Mutex
	tasks map[int]spec.PrefixFields
}

func newTaskIndex(run *starter.Run, s *spec.RunSpec) *taskIndex {
	own, _ := os.Hostname() // empty for a nameless machine
	x := &taskIndex{run: run, own: own, tasks: map[int]spec.PrefixFields{}}
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

// task returns the task with the given rank. If the rank is unknown, the task's type is "rank".
func (x *taskIndex) task(rank int) spec.PrefixFields {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t, ok := x.tasks[rank]; ok {
		return t
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.RequestTimeout)
	defer cancel()
	if s, err := x.run.Status(ctx); err == nil {
		x.learn(s)
	}
	if t, ok := x.tasks[rank]; ok {
		return t
	}
	return x.added("rank", rank, rank)
}

// learn adds new tasks.
func (x *taskIndex) learn(s *starter.Status) {
	for _, t := range s.Tasks {
		if _, ok := x.tasks[t.Rank]; !ok {
			x.tasks[t.Rank] = x.added(t.Type, t.Index, t.Rank)
		}
	}
}

// added returns a task that was added to the run. It counts as a task on this host, with its
// rank as local rank.
func (x *taskIndex) added(typ string, index, rank int) spec.PrefixFields {
	return spec.PrefixFields{Type: typ, Index: index, Rank: rank, LocalRank: rank, Host: x.own}
}

func (x *taskIndex) name(rank int) string {
	t := x.task(rank)
	return spec.TaskName(t.Type, t.Index)
}

// prefixes returns a function that returns the line prefix of a process.
func (x *taskIndex) prefixes(s *spec.RunSpec) (func(rank, attempt int) string, error) {
	format, err := spec.ParsePrefix(s.Logs.Prefix)
	return func(rank, attempt int) string {
		t := x.task(rank)
		t.Attempt = attempt
		return format.Format(t)
	}, err
}

// selection returns a function that reports whether a stream is followed. It also selects
// streams on other hosts that would be written directly to our output on this host.
func (x *taskIndex) selection(s *spec.RunSpec) func(tasklog.Stream) bool {
	tee := map[int]spec.Std{} // by rank
	return func(st tasklog.Stream) bool {
		shown, ok := tee[st.Rank]
		if !ok {
			t := x.task(st.Rank)
			streams := s.StreamsOf(spec.Task{Type: t.Type, Index: t.Index, Rank: t.Rank}, t.LocalRank)
			if shown = streams.Tee; t.Host != x.own {
				shown |= streams.Console
			}
			tee[st.Rank] = shown
		}
		if st.Stderr {
			return shown.Err()
		}
		return shown.Out()
	}
}
