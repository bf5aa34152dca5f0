package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The limits for a run's page in a file.
const (
	maxHTMLTasks = 64      // tasks with output
	htmlTail     = 500     // output lines per stream
	maxHTMLLines = 4000    // lines of output
	maxHTMLBytes = 4 << 20 // of these lines
)

// exportHTML writes a run's page to a file.
func exportHTML(ctx context.Context, a *cli.App, r *starter.Run, file string) error {
	of, err := accountOf(ctx, a, r)
	if err != nil {
		return err
	}
	p, err := htmlPage(ctx, a, r, of)
	if err != nil {
		return err
	}
	if file == "-" {
		return page.RenderRun(cli.UntilDone{Ctx: ctx, W: a.Out}, p, page.File)
	}
	file = cmp.Or(file, runrecord.DirName(r.ID)+".html")
	return exportFile(ctx, a, of, file, func(w io.Writer) error { return page.RenderRun(w, p, page.File) })
}

// htmlPage gathers a run's page.
func htmlPage(ctx context.Context, a *cli.App, r *starter.Run, of *runrecord.Account) (p *page.RunPage, err error) {
	var open []barriers.Barrier
	if of.Status.Open {
		if open, err = barriers.Open(ctx, r); err != nil {
			return nil, err
		}
	}
	rounds, err := barriers.Closed(ctx, r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	p = page.NewRun(of.Status, open, now)
	p.AddAccount(of, rounds)
	p.Frame = page.Frame{At: now, Zone: time.Local, Version: spec.Version}
	p.Output = htmlOutput(ctx, a, r, of.Status, &p.Tasks)
	limited, cancel := context.WithTimeout(ctx, filesTake)
	defer cancel()
	kept := r.Files(of.Status)
	defer kept.Close()
	histories, _ := runrecord.Metrics(limited, kept, of.Status.Tasks) // the page has the rest
	p.Metrics = page.NewMetrics(histories)
	return p, ctx.Err()
}

// htmlOutput returns the output included in a file, which is the last lines of the tasks that
// need attention first.
func htmlOutput(ctx context.Context, a *cli.App, r *starter.Run, s *starter.Status, tasks *page.Tasks) (out page.Output) {
	selected := files.Selection{Selection: tasklog.Selection{Tail: htmlTail}}
	out.Cut = fmt.Sprintf("The last %d lines of each stream; `clusterrun logs %s` shows all of them.", htmlTail, s.RunID)
	if len(tasks.All) > maxHTMLTasks {
		for _, t := range tasks.Rows()[:maxHTMLTasks] {
			selected.Names = append(selected.Names, t.Name)
		}
		out.Cut = fmt.Sprintf("The last %d lines of each stream of %d of %d tasks, those with problems first; `clusterrun logs %s` shows all of them.", htmlTail, maxHTMLTasks, len(tasks.All), s.RunID)
	}
	out.Lines, out.Missing = logs.Merged(ctx, a, r, s, tasks.All, selected, "")
	size := 0
	for i, line := range slices.Backward(out.Lines) {
		if size += len(line.Text); size > maxHTMLBytes || len(out.Lines)-i > maxHTMLLines {
			out.Lines = out.Lines[i+1:]
			out.Cut = fmt.Sprintf("The last %d lines. ", len(out.Lines)) + out.Cut
			break
		}
	}
	return out
}
