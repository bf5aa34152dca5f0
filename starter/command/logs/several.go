package logs

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// shared is the output of the readers of several runs. It tells the processes of different runs
// apart by ranks: the ranks of run i begin at i times ranksOfRun.
type shared struct {
	readers []*Reader
	deliver func(tasklog.Chunk)
	close   func() error
}

// ranksOfRun is more than a run can have.
const ranksOfRun = 1 << 24

// of maps a shared rank to its reader, and to the rank there.
func (o *shared) of(rank int) (*Reader, int) {
	return o.readers[rank/ranksOfRun], rank % ranksOfRun
}

// sinkOf returns the function that shows the output of one of the runs.
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

// open opens the outputs of the command.
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

// showSeveral shows the logs of several runs: one after the other or, if they are followed, all
// at the same time. A run whose logs cannot be shown does not prevent the others.
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
