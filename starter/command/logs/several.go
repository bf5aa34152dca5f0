package logs

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// shared is the output of several runs' readers. Ranks distinguish the processes of different
// runs: run i's ranks start at i times ranksOfRun.
type shared struct {
	readers []*Reader
	deliver func(tasklog.Chunk)
	close   func() error
}

// ranksOfRun exceeds any run's number of ranks.
const ranksOfRun = 1 << 24

// of maps a shared rank to its reader and the rank in that reader's run.
func (o *shared) of(rank int) (*Reader, int) {
	return o.readers[rank/ranksOfRun], rank % ranksOfRun
}

// sinkOf returns the function that shows one run's output.
func (o *shared) sinkOf(l *Reader) func(tasklog.Chunk) {
	for i, r := range o.readers {
		if r == l {
			return func(c tasklog.Chunk) {
				c.Rank += i * ranksOfRun
				o.deliver(c)
			}
		}
	}
	return o.deliver
}

// open opens the command's outputs.
func (o *shared) open(a *cli.App) {
	if a.Global.JSON {
		lines := tasklog.NewJSONLines(a.Out, func(rank int) (run, task string) {
			l, rank := o.of(rank)
			return l.names(rank)
		})
		o.deliver, o.close = lines.Deliver, lines.Close
		return
	}
	console := tasklog.NewConsole(a.Out, a.Err, tasklog.ConsoleOptions{Prefix: func(rank, _ int) string {
		l, rank := o.of(rank)
		run, task := l.names(rank)
		return fmt.Sprintf("[%s/%s]: ", run, task)
	}})
	a.Printer.Through(console)
	o.deliver = console.Deliver
	o.close = func() error {
		a.Printer.Flush()
		a.Printer.Through(nil)
		return console.Close()
	}
}

// showSeveral shows several runs' logs, one run after another or, if they are followed, all at
// the same time. A run with logs that cannot be shown does not prevent the rest.
func showSeveral(ctx context.Context, a *cli.App, runs []*starter.Run, o *logsOptions) error {
	out := &shared{}
	for _, r := range runs {
		l := NewReader(a, r, o.selected)
		l.Follow, l.shared = o.follow, out
		out.readers = append(out.readers, l)
	}
	out.open(a)
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
	for _, l := range out.readers {
		if o.follow {
			wg.Go(func() { show(l) })
		} else {
			show(l)
		}
	}
	wg.Wait()
	if err := out.close(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return worst
}
