package logs

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// ranksOfRun exceeds any run's number of ranks. It distinguishes the processes of several runs: run
// i's ranks start at i times ranksOfRun.
const ranksOfRun = 1 << 24

// openShared opens the outputs of several runs. name returns the run and the task of a rank.
func openShared(a *cli.App, name func(rank int) (run, task string)) (deliver func(tasklog.Chunk), end func() error) {
	if a.Global.JSON {
		lines := tasklog.NewJSONLines(a.Out, name)
		return lines.Deliver, lines.Close
	}
	screen := OpenScreen(a, tasklog.ConsoleOptions{Prefix: func(rank, _ int) string {
		run, task := name(rank)
		return fmt.Sprintf("[%s/%s]: ", run, task)
	}}, "", 0, false)
	return screen.Deliver, screen.Close
}

// showSeveral shows several runs' logs, one run after another or, if they are followed, all at the
// same time. If a run's logs cannot be shown, the remaining runs' logs still are.
func showSeveral(ctx context.Context, a *cli.App, runs []*starter.Run, o *logsOptions) error {
	readers := make([]*Reader, len(runs))
	deliver, end := openShared(a, func(rank int) (run, task string) {
		l := readers[rank/ranksOfRun]
		return l.run.ID, l.tasks.Name(rank % ranksOfRun)
	})
	for i, r := range runs {
		readers[i] = NewReader(a, r, o.selected)
		readers[i].Follow, readers[i].Deliver = o.follow, func(c tasklog.Chunk) {
			c.Rank += i * ranksOfRun
			deliver(c)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.WhenBroken(func(err error) { stop(err) })
	var mu sync.Mutex
	var worst error
	show := func(l *Reader) {
		err := l.Show(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if cli.CodeOf(err) > cli.CodeOf(worst) {
			worst = &cli.ExitError{Code: cli.CodeOf(err)}
		}
		a.SayError(err)
	}
	var wg sync.WaitGroup
	for _, l := range readers {
		if o.follow {
			wg.Go(func() { show(l) })
		} else {
			show(l)
		}
	}
	wg.Wait()
	if err := end(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return worst
}
