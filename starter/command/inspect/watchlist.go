package inspect

import (
	"bytes"
	"context"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// checkWatch refuses --watch if the output cannot be redrawn.
func checkWatch(a *cli.App) error {
	if f := tasklog.FileOf(a.Out); f == nil || !tasklog.IsTerminal(f) || a.Global.JSON {
		return cli.Usagef("--watch redraws the list on a terminal; programs use --json for the list, and `clusterrun status --watch --json RUN` for a run's changes")
	}
	return nil
}

// listEvery is the interval between lists. Ended runs are looked up one by one, so a list costs
// the server more than a status.
const listEvery = 5 * time.Second

// showList calls show. If watch is set, it repeats that until ctx is done, and draws show's
// output over the previous one.
func showList(ctx context.Context, a *cli.App, watch bool, show func(*cli.App) error) error {
	if !watch {
		return show(a)
	}
	screen := cli.Redrawn{Terminal: tasklog.FileOf(a.Out)}
	text := ""
	notify := func(err error) {
		if err != nil {
			_ = screen.Show(text + err.Error())
		}
	}
	for {
		err := servererror.Patiently(ctx, notify, func() error {
			var b bytes.Buffer
			err := show(&cli.App{Out: &b, Err: &b, Global: a.Global})
			if err == nil {
				text = b.String()
			}
			return err
		})
		if err == nil {
			err = screen.Show(text)
		}
		if err == nil {
			err = retry.Sleep(ctx, listEvery)
		}
		if err != nil {
			return err
		}
	}
}
