package logs

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Logs(a *cli.App) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs [flags] RUN... | RUN TASK|TYPE...",
		Short: "Show the output of runs",
		Args:  o.runs.Args(cli.SomeArgs(1, "RUN")),
		RunE:  func(cmd *cobra.Command, args []string) error { return runLogs(cmd.Context(), a, cmd, args, &o) },
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow the output until the run has ended")
	cmd.Flags().BoolVar(&o.selected.OnlyStdout, "stdout", false, "only stdout")
	cmd.Flags().BoolVar(&o.selected.OnlyStderr, "stderr", false, "only stderr")
	cmd.Flags().StringSliceVar(&o.attempts, "attempt", nil, "only attempt `N` of each task, from 0, or \"last\"; may be repeated")
	cmd.Flags().StringVar(&o.since, "since", "", "only output of the last `TIME`, such as 10m or 2d, or since a time such as 2026-01-31T12:00:00Z")
	cmd.Flags().IntVar(&o.selected.Tail, "tail", 0, "only the last `N` lines of each stream of a process; with -f also new ones")
	o.fold.Register(cmd.Flags())
	o.runs.Flags(cmd)
	return cmd
}

// logsOptions holds the flags of [Logs].
type logsOptions struct {
	follow   bool
	runs     cli.RunSelector
	since    string
	attempts []string
	fold     Fold
	selected Selection
}

// runLogs runs the command [Logs].
func runLogs(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *logsOptions) error {
	if o.selected.OnlyStdout && o.selected.OnlyStderr {
		o.selected.OnlyStdout, o.selected.OnlyStderr = false, false
	}
	if o.selected.Tail < 0 || o.selected.Tail == 0 && cmd.Flags().Changed("tail") {
		return cli.Usagef("--tail %d: give 1 or more", o.selected.Tail)
	}
	if err := o.fold.Check(); err != nil {
		return err
	}
	if err := o.selected.parseAttempts(o.attempts); err != nil {
		return err
	}
	var err error
	if o.selected.Since, err = cli.ParseTime("--since", o.since, time.Now()); err != nil {
		return err
	}
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	chosen, err := o.runs.AllOrTasks(ctx, c, args)
	if err != nil {
		return err
	}
	if len(chosen.Runs) == 1 && len(chosen.Tasks) == 0 {
		if chosen, err = withTrials(ctx, c, chosen); err != nil {
			return err
		}
	}
	if len(chosen.Runs) > 1 {
		return showSeveral(ctx, a, chosen.Runs, o)
	}
	o.selected.Names = chosen.Tasks
	l := NewReader(a, chosen.Runs[0], o.selected)
	l.Follow, l.Fold = o.follow, o.fold
	return l.Show(ctx)
}

// Reader shows one run's logs.
type Reader struct {
	*cli.App
	run      *starter.Run
	Selected Selection
	Follow   bool
	// Spec is set for a run that is shown like a local run. If it is nil, all output is shown.
	Spec *spec.RunSpec
	// Fold selects when identical lines from several tasks are shown as one.
	Fold Fold
	// Notify is called when the server goes away; see [cli.App.SayUnreachable].
	Notify func(error)
	// shared is for the output of several runs. It is nil for a single run.
	shared *shared

	tasks    placedTasks
	Deliver  func(tasklog.Chunk)
	dirs     []os.FileInfo // directories being read
	readers  []*tasklog.Follower
	Hosts    map[string]*Host  // by service address
	there    map[int][]int     // see [tasklog.Attempts]
	named    map[logFiles]bool // for namesLeftOut
	finished bool              // whether the hosts have been read completely
	unknown  bool              // whether the run's hosts are unknown
	// Broken reports whether existing output could not be read.
	Broken atomic.Bool
	// shown reports whether there was any output.
	shown atomic.Bool

	mu      sync.Mutex
	sources map[logProcess]any // the source that delivers a process's output
}

// logProcess is one process of a run.
type logProcess struct{ rank, attempt int }

func NewReader(a *cli.App, run *starter.Run, selected Selection) *Reader {
	return &Reader{
		App: a, run: run, Selected: selected, Notify: a.SayUnreachable, Hosts: map[string]*Host{},
		there: map[int][]int{}, named: map[logFiles]bool{}, sources: map[logProcess]any{},
	}
}

func (l *Reader) Show(ctx context.Context) error {
	ended := l.awaitEnd(ctx)
	s, err := l.find(ctx)
	if err != nil {
		return err
	}
	_, mistake := l.Selected.ranks(s)
	if mistake != nil {
		l.Say("%s", l.Color.Bad(mistake.Error()))
	}
	finish, err := l.sink()
	if err != nil {
		return err
	}
	l.read(ctx, s)
	defer l.CloseHosts()
	if err := l.Selected.checkAttempts(s, l.there); err != nil {
		return err
	}
	l.sayPruned(s)
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if l.shared == nil {
		l.WhenBroken(func(err error) { stop(err) }) // the remaining output could not be shown
	}
	if l.Follow && s.Open {
		if s, err = l.toTheEnd(following, s, ended); err != nil {
			return cmp.Or(context.Cause(following), err)
		}
	}
	for _, r := range l.readers {
		if err := r.Stop(following); err != nil {
			return context.Cause(following)
		}
	}
	if err := l.FinishHosts(following); err != nil {
		return context.Cause(following)
	}
	if err := finish(); err != nil {
		return err
	}
	if l.Misses(s) {
		return &cli.ExitError{Code: exitcode.Machinery}
	}
	if mistake != nil {
		return &cli.ExitError{Code: exitcode.Usage}
	}
	if !l.shown.Load() && !l.Selected.leavesOut() {
		l.Say("run %s has written nothing yet, or only to no file (logs.redirects, --tee)", l.run.ID)
	}
	return nil
}

// sayPruned names the selected attempts with removed logs.
func (l *Reader) sayPruned(s *starter.Status) {
	meant := l.Selected.Of(s, l.there)
	for _, t := range s.Tasks {
		from, to, pruned := tasklog.Pruned(l.there[t.Rank])
		if pruned && meant.HasTask(t.Rank) && meant.HasAttempt(t.Rank, from) {
			l.Say("%s: attempts %d to %d have been removed; of a task, the first attempt and the latest %d are kept", t.Name, from, to, tasklog.KeepAttempts)
		}
	}
}

// find returns the run's status. With Follow it waits until the run has logs, here or on other
// hosts.
func (l *Reader) find(ctx context.Context) (*starter.Status, error) {
	for tries := 1; ; tries++ {
		s, err := l.run.Status(ctx)
		switch {
		case err != nil && (l.Spec != nil || l.Follow && servererror.IsTransient(err)) && tries < maxTries && retry.Sleep(ctx, lookAgain) == nil:
			continue // the run was just started, or is to be followed, so the server should come back
		case err != nil:
			return nil, err
		}
		l.tasks.learn(s)
		if wanted, err := l.Selected.ranks(s); err != nil && len(wanted) == 0 {
			return nil, err
		}
		l.LearnServices(ctx, s)
		if tries <= maxBeats && l.isUnheard(s) {
			if err := retry.Sleep(ctx, lookAgain); err != nil {
				return nil, err
			}
			continue
		}
		known := someHeard(s)
		switch {
		case len(l.RunDirs(s)) > 0 || len(s.Services) > 0 || l.Follow && s.Open && known:
			return s, nil
		case !l.Follow || !s.Open:
			if l.namesLeftOut(s) {
				return nil, &cli.ExitError{Code: exitcode.Machinery}
			}
			if s.Result != nil && s.Result.ErrorType == spec.ErrInvalidRunSpec {
				return nil, fmt.Errorf("run %s was refused and has started nothing, so it has no logs; `clusterrun status %s` says why", l.run.ID, l.run.ID)
			}
			if s.Open && !known {
				return nil, fmt.Errorf("run %s has not started its tasks yet; -f waits for their output", l.run.ID)
			}
			own := &fs.PathError{Op: "open", Path: l.ownDir(s), Err: fs.ErrNotExist}
			return nil, fmt.Errorf("run %s has no logs on this host: %w", l.run.ID, own)
		}
		if err := retry.Sleep(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
}

const (
	// lookAgain is the interval between checks of a run while some of its logs are unknown, and
	// lookSeldom the interval after that, when tasks may only move to other hosts.
	lookAgain  = 500 * time.Millisecond
	lookSeldom = 5 * time.Second
	// maxTries limits the status requests for a run that this command has started or follows.
	maxTries = 40
	// maxBeats limits the checks while hosts have not reported where their output is.
	maxBeats = 10
)

// isUnheard reports whether there are selected processes with output at a location that is still
// unknown. Hosts report it with the first heartbeat.
func (l *Reader) isUnheard(s *starter.Status) bool {
	if l.Follow || !s.Open || s.Unanswered {
		return false
	}
	here, _ := tasklog.Attempts(l.ownDir(s)) // reading them later reports the error
	meant := l.Selected.Of(s, nil)
	return slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool {
		return t.State == spec.TaskRunning && t.LogDir == "" && len(here[t.Rank]) == 0 && meant.HasTask(t.Rank)
	})
}

// awaitEnd returns a channel that is closed when a followed run has ended. Until then, even
// before the run has logs, Notify is called if the server is away or the run is stuck.
func (l *Reader) awaitEnd(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	if l.Follow {
		go func() {
			defer close(ended)
			// The result is ignored, because the command shows only logs.
			_, _ = l.run.WaitNotify(ctx, l.Notify)
		}()
	}
	return ended
}

// toTheEnd follows the run until it has ended, and returns its last status.
func (l *Reader) toTheEnd(ctx context.Context, s *starter.Status, ended <-chan struct{}) (*starter.Status, error) {
	for {
		l.namesLeftOut(s)
		every := lookSeldom
		if slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.LogDir == "" && t.State != spec.TaskEnded }) {
			every = lookAgain
		}
		over := false
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ended:
			over = true
		case <-time.After(every):
		}
		switch now, err := l.run.Status(ctx); {
		case err == nil:
			s = now
			l.tasks.learn(s)
			l.LearnServices(ctx, s)
			l.read(ctx, s)
		case over:
			return nil, err
		}
		if over {
			return s, ctx.Err()
		}
	}
}

// read starts reading the directories and hosts that are not being read yet.
func (l *Reader) read(ctx context.Context, s *starter.Status) {
	hosts := l.AddHosts(ctx, s)
	var added []string
	for _, dir := range l.RunDirs(s) {
		info, err := os.Stat(dir)
		if err != nil || slices.ContainsFunc(l.dirs, func(d os.FileInfo) bool { return os.SameFile(d, info) }) {
			continue
		}
		l.dirs, added = append(l.dirs, info), append(added, dir)
		numbers, err := tasklog.Attempts(dir)
		if err != nil {
			l.unreadable(err)
		}
		l.Found(numbers)
	}
	selection := l.Selected.Of(s, l.there)
	for _, dir := range added {
		options := tasklog.FollowOptions{Select: selection.Has, From: selection.From(dir), OnError: l.unreadable}
		if l.asJSON() {
			options.Hold = tasklog.WholeLines
		}
		l.readers = append(l.readers, tasklog.Follow(dir, l.from(dir), options))
	}
	for _, h := range hosts {
		l.Follows(h, selection, l.Follow && s.Open)
	}
}

// Found records processes that have files.
func (l *Reader) Found(attempts map[int][]int) {
	for rank, n := range attempts {
		l.there[rank] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(l.there[rank], n))))
	}
}

// from returns a source's sink. If two sources offer the same process, for example a directory
// that is also served, the first to deliver output is used.
func (l *Reader) from(source any) func(tasklog.Chunk) {
	return func(c tasklog.Chunk) {
		p := logProcess{c.Rank, c.Attempt}
		l.mu.Lock()
		if l.sources[p] == nil {
			l.sources[p] = source
		}
		mine := l.sources[p] == source
		l.mu.Unlock()
		if mine {
			l.shown.Store(true)
			l.Deliver(c)
		}
	}
}

func (l *Reader) unreadable(err error) {
	l.Broken.Store(true)
	l.Say("%s", err)
}
