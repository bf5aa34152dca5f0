package look

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
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/size"
)

// statusOptions are the flags of status.
type statusOptions struct {
	tasks                                taskChoice
	watch, why, usage, history, barriers bool
	csv                                  bool
	best                                 string
}

func Status(a *cli.App) *cobra.Command {
	var o statusOptions
	cmd := cli.OnRun(a, &cobra.Command{
		Use:     "status [flags] RUN",
		Short:   "Show how a run and its tasks are doing",
		Long:    spec.CausesText(), // for its help
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
	}, func(ctx context.Context, r *starter.Run) error { return showStatus(ctx, a, r, &o) })
	fs := cmd.Flags()
	fs.BoolVarP(&o.watch, "watch", "w", false, "continue until the run has ended, and exit as it did")
	fs.BoolVar(&o.why, "why", false, "show why the run waits, or what it is doing")
	fs.BoolVar(&o.usage, "usage", false, "show the processors, memory and GPUs that the tasks use")
	fs.BoolVar(&o.history, "history", false, "with --usage: show it over time")
	fs.BoolVar(&o.barriers, "barriers", false, "show which tasks wait at barriers, and which are missing")
	fs.BoolVar(&o.csv, "csv", false, "print the trials of a sweep as CSV")
	fs.StringVar(&o.best, "best", "", "sort the trials of a sweep by a number that they return: `KEY:min` or KEY:max")
	o.tasks.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("watch", "why", "usage", "barriers")
	return cmd
}

// check refuses flags that contradict each other.
func (o *statusOptions) check() error {
	switch {
	case o.history && !o.usage:
		return cli.Usagef("--history: it is about usage; give --usage, too")
	case (o.why || o.usage && !o.history || o.barriers) && o.tasks.each():
		return cli.Usagef("--why, --usage and --barriers are about all tasks of the run; leave out --all, --failed, --on-host and --task")
	}
	return nil
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
	switch of, err := isSweep(ctx, r, s); {
	case err != nil:
		return err
	case of:
		return showSweep(ctx, a, r, s, o)
	case o.csv, o.best != "":
		return cli.Usagef("--csv and --best are for sweeps: %s", (&starter.NotSweepError{RunID: r.ID}).Error())
	}
	switch {
	case o.why:
		return showWhy(ctx, a, r, s)
	case o.history:
		return showUsageHistory(ctx, a, r, s, &o.tasks)
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
		a.Say("no task of the run matches")
	}
	return nil
}

// isSweep reports whether a run is a sweep. One that was ended on the server has no status of its
// trials.
func isSweep(ctx context.Context, r *starter.Run, s *starter.Status) (bool, error) {
	if s.Sweep != nil || len(s.Tasks) > 0 && !s.Unanswered && s.Result != nil {
		return s.Sweep != nil, nil
	}
	return r.IsSweep(ctx)
}

// watchStatus shows the status of a run until its end.
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
		if s.Sweep != nil && screen != nil {
			var b strings.Builder
			printSweep(&b, s)
			return screen.Show(b.String())
		}
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
		line := changes.Of(s)
		switch {
		case line == "":
		case a.Global.JSON:
			return a.PrintJSONLine(s)
		default:
			_, err = fmt.Fprintln(a.Out, report.WithClock(line))
		}
		return err
	}
	result, err := report.ResultOf(report.Watch(ctx, r, show, notify))
	if err != nil {
		return err
	}
	return report.ReportEnd(a, r.ID, result)
}

// printStatus writes the status of a run. If each is set, it writes a line for every task.
func printStatus(out io.Writer, s *starter.Status, each bool) {
	state := s.Word()
	switch {
	case s.Result != nil:
		state = string(s.Result.Verdict)
	case !s.Open && s.Message != "":
		state = s.Message
	case s.Paused:
		state = "open, but " + s.Absence()
	case s.Unanswered:
		state = "open, but " + s.Absence() + " at the moment ("
		if s.Unattended {
			state += "is its `clusterrun worker`, `dev` or `run` there?)"
		} else {
			state += "a host worker may be frozen, cut off or just gone)"
		}
	}
	took := time.Since(s.Started)
	if !s.Open {
		took = s.Ended.Sub(s.Started)
	}
	generation := ""
	if s.Generation > 0 {
		generation = fmt.Sprintf(", generation %d", s.Generation)
	}
	fmt.Fprintf(out, "run %s: %s%s, %s\n", s.RunID, state, generation, cli.Roughly(took))
	if s.Command != "" || s.Dir != "" {
		command := cli.OrDash(spec.Cell(s.Command))
		if s.Dir != "" { // otherwise it ships one
			command += " in " + spec.Cell(s.Dir)
		}
		fmt.Fprintln(out, command)
	}
	if s.Terminated() {
		fmt.Fprintf(out, "its host workers stop the processes it left, and their ends are not known here; `clusterrun rm %s` removes what is left of it\n", shellword.Of(s.RunID))
	}
	if s.Elastic != nil {
		fmt.Fprintf(out, "elastic: %s\n", s.Elastic)
	}
	if s.Archive != nil {
		fmt.Fprintf(out, "it ships %s\n", archiveLine(*s.Archive))
	}
	if s.Result == nil || s.Result.Verdict == spec.VerdictSucceeded { // otherwise the message lists them
		for _, r := range s.GroupRestarts {
			fmt.Fprintln(out, outcome.Restart(r))
		}
	}
	if line := outcome.Preempted(s.Preemptions, s.PendingSince, time.Local); line != "" {
		fmt.Fprintln(out, line)
	}
	if s.Notice != nil && s.Result == nil {
		fmt.Fprintf(out, "notice: %s\n", outcome.StopNotice(*s.Notice, time.Now()))
	}
	for _, w := range s.Waiting {
		fmt.Fprintf(out, "waiting for %s\n", report.WaitingLine(w, time.Now()))
	}
	for _, h := range s.Silent {
		fmt.Fprintln(out, h.Text(time.Now()))
	}
	if limit := learntSilence(s.Tasks); limit > 0 {
		fmt.Fprintf(out, "silence: auto, now %s\n", cli.Roughly(limit))
	}
	if line := silentLine(s); line != "" {
		fmt.Fprintln(out, line)
	}
	printSlow(out, s)
	if s.Stacks != nil {
		fmt.Fprintf(out, "when it was looked at last:\n%s\n", s.Stacks)
	}
	if s.OnDisconnect != "" && s.OnDisconnect != spec.OnDisconnectKeep && s.Open {
		alone, outage, two := strings.Cut(string(s.OnDisconnect), ",")
		fmt.Fprintf(out, "a host that hears nothing of the server for %s stops its processes (on_disconnect)", alone)
		if two {
			fmt.Fprintf(out, "; after %s if it reaches its witnesses among the other hosts, and none of them reaches the server", outage)
		}
		fmt.Fprintln(out)
	}
	if s.Stopping != nil && s.Result == nil {
		fmt.Fprintf(out, "stopping together: %s\n", report.StoppingLine(*s.Stopping, time.Now()))
	}
	if s.Result != nil {
		if s.Result.Message != "" {
			fmt.Fprintln(out, s.Result.Message)
		}
		for _, line := range outcome.Lines(s.Result, outcome.Options{Zone: time.Local}) {
			fmt.Fprintln(out, line)
		}
	}
	if line := report.UnkeptOf(s.Tasks, func(t starter.TaskStatus) (string, *spec.Exit) { return t.Name, t.Exit }); line != "" {
		fmt.Fprintln(out, line)
	}
	for _, t := range s.Tasks {
		if t.Exit != nil && t.Exit.OOMKills > 0 && s.Result == nil {
			fmt.Fprintf(out, "%s: %s\n", t.Name, t.Exit.OOMText())
		}
		if t.Exit != nil && t.Exit.LeftBehind > 0 {
			fmt.Fprintf(out, "%s ended by itself and left %s running, killed after the grace (stop.grace)\n", t.Name, plural.Of(t.Exit.LeftBehind, "process", "processes"))
		}
	}
	if len(s.Tasks) == 0 {
		return
	}
	if s.Result != nil && len(s.Tasks) <= mostRows {
		printReturned(out, s)
	}
	fmt.Fprintln(out)
	if each || len(s.Tasks) <= mostRows {
		printTasks(out, s.Tasks)
		return
	}
	printSummary(out, s)
}

// printSlow writes the tasks and hosts that are slower than others.
func printSlow(out io.Writer, s *starter.Status) {
	const most = 8
	for _, slow := range s.Slow[:min(len(s.Slow), most)] {
		fmt.Fprintf(out, "slow: %s\n", slow)
	}
	if more := len(s.Slow) - most; more > 0 {
		fmt.Fprintf(out, "slow: %d more\n", more)
	}
	if s.TooFewSteps {
		fmt.Fprintln(out, "slow: too few steps are known to compare the tasks")
	}
}

// printReturned writes the values that the tasks of s have returned.
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

// archiveLine describes the files that a run ships.
func archiveLine(a spec.Archive) string {
	return fmt.Sprintf("%s in %s, SHA-256 %s", size.Of(int64(a.Size)), plural.Of(a.Files, "file", "files"), a.Digest)
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// learntSilence returns the learned time after which tasks count as silent, or 0 if none is
// learned.
func learntSilence(tasks []starter.TaskStatus) (limit time.Duration) {
	for _, t := range tasks {
		if t.Usage != nil {
			limit = max(limit, time.Duration(t.Usage.SilentAfter)*time.Second)
		}
	}
	return limit
}

// silentLine names the tasks that show no sign of work, and counts the others.
func silentLine(s *starter.Status) string {
	var names []string
	var least time.Duration
	others := 0
	for _, t := range s.Tasks {
		if t.Usage == nil || t.Usage.SilentSeconds == 0 {
			if t.Usage != nil {
				others++
			}
			continue
		}
		silent := time.Duration(t.Usage.SilentSeconds) * time.Second
		if names = append(names, t.Name); len(names) == 1 || silent < least {
			least = silent
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("silent for %s: %s (%s)", cli.Roughly(least), shorten.Text(strings.Join(names, ", "), 200), spec.SilenceText(s.SilenceIgnoresCPU))
	if others > 0 {
		text += fmt.Sprintf("; %s at work", plural.Of(others, "other is", "others are"))
	}
	return text
}
