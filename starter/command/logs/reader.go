package logs

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Reader shows one run's logs.
type Reader struct {
	*cli.App
	run      *starter.Run
	Selected files.Selection
	Follow   bool
	// Spec is set for a run that is shown like a local run. If it is nil, all output is shown.
	Spec *spec.RunSpec
	// Fold selects when identical lines from several tasks are shown as one.
	Fold Fold
	// Notify is called when the server goes away; see [cli.App.SayUnreachable].
	Notify func(error)
	// Deliver shows output. If it is nil, [Reader.Show] shows it on this command's outputs.
	Deliver func(tasklog.Chunk)

	tasks  Tasks
	output *files.Output
	said   map[string]bool // what sayMissing has printed
	broken atomic.Bool     // whether existing output could not be read
	shown  atomic.Bool     // whether there was any output
}

func NewReader(a *cli.App, run *starter.Run, selected files.Selection) *Reader {
	return &Reader{App: a, run: run, Selected: selected, Notify: a.SayUnreachable, said: map[string]bool{}}
}

const (
	// startsWithin is how long a new run may take to start its tasks before Show reports that it has
	// no output.
	startsWithin = 5 * time.Second
	startsEvery  = 200 * time.Millisecond
)

// Show shows the output. If some output is missing, it reports that and returns an error.
func (l *Reader) Show(ctx context.Context) error {
	ended := l.awaitEnd(ctx)
	s, err := l.status(ctx)
	if err != nil {
		return err
	}
	known, unknown := s.Select(l.Selected.Names)
	mistake := cli.UnknownTasks(s, unknown)
	if mistake != nil && len(known) == 0 {
		return mistake
	}
	if mistake != nil {
		l.Say("%s", l.Color.Bad(mistake.Error()))
	}
	l.tasks.learn(s)
	own := l.Deliver == nil
	finish, err := l.sink()
	if err != nil {
		return err
	}
	defer l.open(s)()
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if own {
		l.WhenBroken(func(err error) { stop(err) }) // the remaining output could not be shown
	}
	l.output.Look(following, s)
	if err := checkAttempts(s, &l.Selected, l.output.There()); err != nil {
		return err
	}
	sayPruned(l.App, s, &l.Selected, l.output.There())
	if s, err = l.follow(following, s, ended); err == nil {
		err = l.output.Finish(following)
	}
	if err != nil {
		return cmp.Or(context.Cause(following), err)
	}
	if err := finish(); err != nil {
		return err
	}
	if l.sayMissing() || l.broken.Load() {
		return &cli.ExitError{Code: exitcode.Machinery}
	}
	if mistake != nil {
		return &cli.ExitError{Code: exitcode.Usage}
	}
	if l.Spec == nil && !l.shown.Load() && !l.Selected.LeavesOut() {
		if s.Open && len(l.output.There()) == 0 && time.Since(s.Started) < startsWithin && retry.Sleep(ctx, startsEvery) == nil {
			return l.Show(ctx)
		}
		return l.whyNothing(s)
	}
	return nil
}

// ReadNow passes the selected output that exists now to Deliver, which must be set. It reports
// what cannot be read.
func (l *Reader) ReadNow(ctx context.Context, s *starter.Status) error {
	defer l.open(s)()
	l.output.Look(ctx, s)
	if err := l.output.Finish(ctx); err != nil {
		return err
	}
	sayPruned(l.App, s, &l.Selected, l.output.There())
	l.sayMissing()
	return nil
}

// open prepares for reading, and returns a function that stops it.
func (l *Reader) open(s *starter.Status) (stop func()) {
	of := l.run.Files(s)
	o := files.Options{
		Selection: l.Selected, Live: l.Follow, WholeLines: l.asJSON(), LogDir: l.LogsDir(),
		OnError: func(err error) {
			l.broken.Store(true)
			l.Say("%s", err)
		},
		OnTrouble: func(host string, err error) {
			if err == nil {
				l.Say("the output of %s can be read again", host)
			} else {
				l.Say("the output of %s cannot be read at present: %s", host, err)
			}
		},
	}
	if l.Spec != nil {
		o.Select, o.OnNext = l.tasks.Shown(l.Spec), Announce(l.App, l.run, l.Spec, l.tasks.Name)
	}
	l.output = of.Follow(o, func(c tasklog.Chunk) {
		l.shown.Store(true)
		l.Deliver(c)
	})
	return func() {
		l.output.Close()
		of.Close()
	}
}

// status returns the run's first status.
func (l *Reader) status(ctx context.Context) (s *starter.Status, err error) {
	ask := func() error {
		s, err = l.run.Status(ctx)
		return err
	}
	if l.Follow {
		return s, servererror.Patiently(ctx, func(error) {}, ask) // awaitEnd notifies
	}
	return s, ask()
}

const (
	// lookAgain is the interval between checks while some of a run's logs are unknown. lookSeldom
	// is the interval afterwards, when the only change may be tasks that move to other hosts.
	lookAgain  = 500 * time.Millisecond
	lookSeldom = 5 * time.Second
	// maxBeats limits the checks while hosts have not reported where their output is.
	maxBeats = 10
)

// isUnheard reports whether the location of any selected process's output is still unknown. Hosts
// report it with the first heartbeat.
func (l *Reader) isUnheard(s *starter.Status) bool {
	there := l.output.There()
	meant := l.Selected.Of(s, nil)
	return s.Open && !s.Unanswered && slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool {
		return t.State == spec.TaskRunning && t.LogDir == "" && len(there[t.Rank]) == 0 && meant.HasTask(t.Rank)
	})
}

// awaitEnd returns a channel that is closed at a followed run's end. Until then, even before its
// first output, Notify is called if the server is away or the run is stuck.
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

// follow looks for new places until a followed run's end, or otherwise until the selected
// output's places are known. It returns the last status.
func (l *Reader) follow(ctx context.Context, s *starter.Status, ended <-chan struct{}) (*starter.Status, error) {
	for tries, over := 1, false; !over && s.Open && (l.Follow || tries < maxBeats && l.isUnheard(s)); tries++ {
		every := lookAgain
		if l.Follow {
			l.sayMissing()
			if !slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.LogDir == "" && t.State != spec.TaskEnded }) {
				every = lookSeldom
			}
		}
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
			l.output.Look(ctx, s)
		case over:
			return nil, err
		}
	}
	return s, ctx.Err()
}

// sayMissing names, once each, the selected processes with output that cannot be shown, and
// reports whether there are any.
func (l *Reader) sayMissing() bool {
	all := l.output.Missing()
	text := ""
	for _, m := range all {
		isNew := len(m.Processes) == 0 && !l.said[m.Why]
		l.said[m.Why] = true
		m.Processes = slices.DeleteFunc(m.Processes, func(name string) bool { return l.said[name+m.Why] })
		for _, name := range m.Processes {
			isNew, l.said[name+m.Why] = true, true
		}
		if isNew {
			text += "\n" + m.String()
		}
	}
	if text != "" {
		l.Say("%s", l.Color.Bad(fmt.Sprintf("logs of run %s that cannot be read are left out:%s", l.run.ID, text)))
	}
	return len(all) > 0
}

// whyNothing explains why there is no output.
func (l *Reader) whyNothing(s *starter.Status) error {
	switch {
	case len(l.output.There()) > 0:
		l.Say("run %s has not written anything yet, or not to files (logs.redirects, --tee)", l.run.ID)
		return nil
	case s.Result != nil && s.Result.ErrorType == spec.ErrInvalidRunSpec:
		return fmt.Errorf("run %s was refused before it started anything, so it has no logs; `clusterrun status %s` shows why", l.run.ID, l.run.ID)
	case s.Open:
		return fmt.Errorf("run %s has not started its tasks yet; -f waits for their output", l.run.ID)
	}
	own := &fs.PathError{Op: "open", Path: tasklog.RunDir(l.LogsDir(), s.RunID, s.ExecutionID), Err: fs.ErrNotExist}
	return fmt.Errorf("run %s has no logs on this host: %w", l.run.ID, own)
}

// sayPruned names the selected attempts whose logs were removed. there holds the processes that
// have files.
func sayPruned(a *cli.App, s *starter.Status, selected *files.Selection, there map[int][]int) {
	meant := selected.Of(s, there)
	for _, t := range s.Tasks {
		from, to, pruned := tasklog.Pruned(there[t.Rank])
		if pruned && meant.HasTask(t.Rank) && meant.HasAttempt(t.Rank, from) {
			a.Say("%s: attempts %d to %d have been removed; each task's first attempt and latest %d attempts are kept", t.Name, from, to, tasklog.KeepAttempts)
		}
	}
}

// checkAttempts returns an error if a finished run lacks logs for a selected attempt.
func checkAttempts(s *starter.Status, selected *files.Selection, there map[int][]int) error {
	if s.Open || len(selected.Attempts) == 0 {
		return nil
	}
	meant := selected.Of(s, nil)
	known := map[int]bool{}
	for rank, numbers := range there {
		for _, n := range numbers {
			if meant.HasTask(rank) {
				known[n] = true
			}
		}
	}
	for _, n := range selected.Attempts {
		if !known[n] {
			return cli.Usagef("--attempt %d: only the attempts %v have logs", n, slices.Sorted(maps.Keys(known)))
		}
	}
	return nil
}

// asJSON reports whether each line is shown as a JSON object.
func (l *Reader) asJSON() bool { return l.Global.JSON && l.Spec == nil }

// sink sets Deliver if it is nil. finish shows the remaining output.
func (l *Reader) sink() (finish func() error, err error) {
	if l.Deliver != nil {
		return func() error { return nil }, nil
	}
	if l.asJSON() {
		lines := tasklog.NewJSONLines(l.Out, l.tasks.Name)
		l.Deliver = lines.Deliver
		return lines.Close, nil
	}
	var prefix *string
	var o tasklog.ConsoleOptions
	if l.Spec != nil {
		prefix, o.Timestamps = l.Spec.Logs.Prefix, l.Spec.Logs.Timestamps
	}
	if o.Prefix, err = l.tasks.Prefixes(prefix); err != nil {
		return nil, err
	}
	screen := OpenScreen(l.App, o, l.Fold, l.tasks.Len(), l.Spec != nil)
	l.Deliver = screen.Deliver
	return screen.Close, nil
}
