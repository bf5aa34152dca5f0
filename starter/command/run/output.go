package run

import (
	"context"
	"fmt"
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
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// output shows a run's output and the status line.
type output struct {
	app    *cli.App
	run    *starter.Run
	screen *logs.Screen
	follow *files.Output   // nil if no output is shown
	logs   string          // location of the logs, for messages
	dir    string          // directory of the followed logs; may be empty
	trials chan struct{}   // closed once a sweep's trials are shown, or nil for other runs
	ended  context.Context // when stop was called
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// show starts showing this command's run. If the run lacks a log directory, its output on other
// hosts is copied to the directory spare, unless spare is empty.
func show(a *cli.App, run *starter.Run, s *spec.RunSpec, wanted runOptions, spare string) (*output, error) {
	s = s.WithDefaults()
	tasks := logs.TasksOf(run, s)
	prefix, err := tasks.Prefixes(s.Logs.Prefix)
	if err != nil {
		return nil, err
	}
	if wanted.sweep != nil {
		prefix = trialPrefix(s)
	}
	status := false
	if f := tasklog.FileOf(a.Err); f != nil {
		status = !a.NoStatus && tasklog.IsTerminal(f)
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &output{app: a, run: run, ended: ctx, stop: stop}
	fold := wanted.fold
	if wanted.sweep != nil {
		fold = "" // trials are shown one at a time
	}
	o.screen = logs.OpenScreen(a, tasklog.ConsoleOptions{Prefix: prefix, Timestamps: s.Logs.Timestamps}, fold, tasks.Len(), true)
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
	a.WhenBroken(func(err error) { a.Say("%s; run %s continues; %s", err, run.ID, o.logs) })
	if !a.Owned && !wanted.torchrun {
		what := fmt.Sprintf("run %s: %s", run.ID, groups(s))
		if wanted.sweep != nil {
			what = fmt.Sprintf("sweep %s: at most %d at a time", run.ID, wanted.sweep.AtMost)
		}
		a.Say("%s", a.Color.Dim(fmt.Sprintf("%s, in %s; %s", what, place(s), o.logs)))
	}
	if o.dir != "" && wanted.sweep == nil {
		shown := tasks.Shown(s)
		o.follow = filesHere(run).Follow(files.Options{
			// The foreground task writes to our own stdout and stderr.
			Select: func(st tasklog.Stream) bool {
				return shown(st) && (wanted.foreground == "" || tasks.Name(st.Rank) != wanted.foreground)
			},
			OnNext:  logs.Announce(a, run, s, tasks.Name),
			OnError: func(err error) { a.Say("%s", err) },
		}, o.screen.Deliver)
		o.follow.ReadDir(o.dir)
	}
	if status {
		o.done.Go(func() { o.keepStatus(ctx) })
	}
	return o, nil
}

// showUnkept shows output that cannot be logged because the disk with the logs is full.
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
				pause = 10 * time.Millisecond // the program is waiting for us
			}
			if err != nil || retry.Sleep(o.ended, pause) != nil {
				return
			}
		}
	})
}

// insert shows output that cannot be written to its file. It waits until our output is read.
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

// filesHere returns a local run's files, before its first status.
func filesHere(run *starter.Run) *files.Files {
	return run.Files(&starter.Status{RunID: run.ID, ExecutionID: run.ExecutionID, Open: true})
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
		_ = o.follow.Finish(context.Background())
	}
	_ = o.screen.Close() // the outlets remember errors
	o.app.WhenBroken(nil)
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
			o.screen.Console.SetStatus("")
			return
		case <-tick.C:
		}
		if s, err := o.run.Status(ctx); err == nil && !s.Unanswered {
			facts = s.Facts
		}
		if ctx.Err() == nil {
			o.screen.Console.SetStatus(report.LiveLine(o.run.ID, facts, started))
		}
	}
}
