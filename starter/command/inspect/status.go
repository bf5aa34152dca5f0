package inspect

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// statusOptions holds the flags of status.
type statusOptions struct {
	tasks                       taskChoice
	watch, why, usage, barriers bool
	csv                         bool
	best                        string
}

func Status(a *cli.App) *cobra.Command {
	var o statusOptions
	cmd := cli.OnRun(a, &cobra.Command{
		Use:   "status [flags] RUN",
		Short: "Show the state of a run and its tasks",
		Long:  spec.CausesText(), // for its help
	}, func(ctx context.Context, r *starter.Run) error { return showStatus(ctx, a, r, &o) })
	fs := cmd.Flags()
	fs.BoolVarP(&o.watch, "watch", "w", false, "continue until the run has ended, and exit like the run")
	fs.BoolVar(&o.why, "why", false, "show why the run waits, or what it is doing")
	fs.BoolVar(&o.usage, "usage", false, "show the processors, memory and GPUs that the tasks use")
	fs.BoolVar(&o.barriers, "barriers", false, "show which tasks are waiting at barriers, and which are missing")
	fs.BoolVar(&o.csv, "csv", false, "print the trials of a sweep as CSV")
	fs.StringVar(&o.best, "best", "", "sort a sweep's trials by a number that they return: `KEY:min` or KEY:max")
	o.tasks.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("watch", "why", "usage", "barriers")
	for _, flag := range taskFlags {
		cmd.MarkFlagsMutuallyExclusive("why", flag) // like --usage and --barriers, it is about all tasks
		cmd.MarkFlagsMutuallyExclusive("usage", flag)
		cmd.MarkFlagsMutuallyExclusive("barriers", flag)
	}
	return cmd
}

// showStatus prints the parts of the status that the flags select.
func showStatus(ctx context.Context, a *cli.App, r *starter.Run, o *statusOptions) error {
	switch {
	case o.watch:
		return watchStatus(ctx, a, r, &o.tasks)
	case o.barriers:
		return showBarriers(ctx, a, r)
	}
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.Sweep != nil:
		return showSweep(ctx, a, r, s, o)
	case o.csv, o.best != "":
		return cli.Usagef("--csv and --best are for sweeps: run %s is no sweep", r.ID)
	}
	switch {
	case o.why:
		return showWhy(ctx, a, r, s)
	case o.usage:
		return showUsage(a, s)
	}
	if s.Tasks, err = o.tasks.of(s); err != nil {
		return err
	}
	if a.Global.JSON {
		return a.PrintJSON(s)
	}
	printStatus(a.Out, s, o.tasks.each())
	if len(s.Tasks) == 0 && o.tasks.narrow() {
		a.Say("none of the run's tasks match")
	}
	return nil
}

// watchStatus shows a run's status until the run has ended.
func watchStatus(ctx context.Context, a *cli.App, r *starter.Run, meant *taskChoice) error {
	var (
		changes report.News
		screen  *cli.Redrawn
		trouble atomic.Pointer[string]
	)
	notify := a.SayUnreachable
	if f := tasklog.FileOf(a.Out); f != nil && tasklog.IsTerminal(f) && !a.Global.JSON {
		screen = &cli.Redrawn{Terminal: f}
		notify = func(err error) {
			text := ""
			if err != nil {
				text = err.Error()
			}
			trouble.Store(&text)
		}
	}
	show := func(s *starter.Status) (err error) {
		if s.Tasks, err = meant.of(s); err != nil {
			return err
		}
		if screen != nil {
			var b strings.Builder
			printStatus(&b, s, meant.each())
			if text := trouble.Load(); text != nil && *text != "" {
				fmt.Fprintln(&b, *text)
			}
			return screen.Show(b.String())
		}
		news := changes.Of(s)
		switch {
		case len(news) == 0:
		case a.Global.JSON:
			return a.PrintJSONLine(s)
		default:
			_, err = fmt.Fprintln(a.Out, report.NewsLine(news))
		}
		return err
	}
	result, err := report.ResultOf(report.Watch(ctx, r, show, notify))
	if err != nil {
		return err
	}
	return report.ReportEnd(a, r.ID, result)
}

// printStatus writes a run's status. If each is set, it writes a line for every task.
func printStatus(out io.Writer, s *starter.Status, each bool) {
	printHead(out, s)
	for _, f := range s.Facts {
		if f.Kind != outcome.FactState && (f.Kind != outcome.FactDone || s.Result == nil) {
			fmt.Fprintln(out, f)
		}
	}
	if s.Stacks != nil {
		fmt.Fprintln(out, s.Stacks.Below())
	}
	if r := s.Result; r != nil && s.Sweep == nil {
		for _, line := range append([]string{r.Message}, outcome.Lines(r, outcome.Options{Zone: time.Local})...) {
			if line != "" {
				fmt.Fprintln(out, line)
			}
		}
	}
	if len(s.Tasks) == 0 {
		return
	}
	if s.Result != nil && len(s.Tasks) <= maxRows {
		printReturned(out, s)
	}
	fmt.Fprintln(out)
	if each || len(s.Tasks) <= maxRows {
		printTasks(out, s.Tasks)
	} else {
		printSummary(out, s)
	}
}

// printHead writes what a run is, and its state.
func printHead(out io.Writer, s *starter.Status) {
	what, generation, until := "run", "", s.Ended
	if s.Sweep != nil {
		what = "sweep"
	}
	if s.Generation > 0 {
		generation = fmt.Sprintf(", generation %d", s.Generation)
	}
	if s.Open {
		until = time.Now()
	}
	fmt.Fprintf(out, "%s %s: %s%s, %s\n", what, s.RunID, s.Word(), generation, cli.Roughly(until.Sub(s.Started)))
	if s.Command != "" || s.Dir != "" {
		command := cli.OrDash(spec.OneLine(s.Command))
		if s.Dir != "" { // otherwise it ships one
			command += " in " + spec.OneLine(s.Dir)
		}
		fmt.Fprintln(out, command)
	}
	switch {
	case s.Sweep != nil && s.Open:
		fmt.Fprintln(out, s.Sweep.Counts()+report.Remaining(s.Sweep))
	case s.Sweep != nil:
		fmt.Fprintln(out, s.Sweep.Summary())
	}
}

// printReturned writes the values that the tasks in s returned.
func printReturned(out io.Writer, s *starter.Status) {
	shown := map[int]bool{}
	for _, t := range s.Tasks {
		shown[t.Rank] = true
	}
	for _, t := range s.Result.Tasks {
		if line := report.Returned(t); line != "" && shown[t.Rank] {
			fmt.Fprintln(out, line)
		}
	}
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
