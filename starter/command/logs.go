package command

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const logsHelp = `Shows the output of the processes of a run, as far as they ran on this host: all
of them or those of the named tasks and types, restarts included, each line with
its task.

--since goes by what the host noted every few seconds (1 in small runs, 8 in
large ones), so it may show that much more than was written since, and never less.

--json prints a JSON object per line, with task, attempt, stream and line.

` + exitCodesOfRequests

func (a *app) logsCommand() *cobra.Command {
	var (
		follow    bool
		execution string
		since     string
		attempts  []string
		selected  logSelection
	)
	cmd := &cobra.Command{
		Use:   "logs [flags] RUN [TASK|TYPE...]",
		Short: "Show the output of a run's processes on this host",
		Long:  logsHelp,
		Example: `  clusterrun logs iris-x2k4 worker-1
  clusterrun logs -f --stderr iris-x2k4
  clusterrun logs --since 10m --attempt last iris-x2k4 ps`,
		Args: someArgs(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			selected.names = args[1:]
			if selected.onlyOut && selected.onlyErr {
				selected.onlyOut, selected.onlyErr = false, false
			}
			if err := selected.parseAttempts(attempts); err != nil {
				return err
			}
			if err := selected.parseSince(since, time.Now()); err != nil {
				return err
			}
			c, _, err := a.dialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			l := &logReader{app: a, run: starter.Get(c, args[0], execution), selected: selected, follow: follow}
			return l.show(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	cmd.Flags().BoolVar(&selected.onlyOut, "stdout", false, "only what was written to stdout")
	cmd.Flags().BoolVar(&selected.onlyErr, "stderr", false, "only what was written to stderr")
	cmd.Flags().StringSliceVar(&attempts, "attempt", nil, "only the `N`-th processes of the tasks, from 0, or \"last\"; may be repeated")
	cmd.Flags().StringVar(&since, "since", "", "only what was written since then: a `TIME` ago, such as 10m, or one like 2026-01-31T12:00:00Z")
	cmd.Flags().StringVar(&execution, "execution", "", "`ID` of one execution (Temporal's run ID), where several had the same run ID")
	return cmd
}

// logReader shows the logs of one run.
type logReader struct {
	*app
	run      *starter.Run
	selected logSelection
	follow   bool
}

func (l *logReader) show(ctx context.Context) error {
	s, dir, err := l.find(ctx)
	if err != nil {
		return err
	}
	options := tasklog.FollowOptions{OnError: func(err error) { l.say("%s", err) }}
	if options.Select, err = l.selected.streams(s, dir); err != nil {
		return err
	}
	if at := l.selected.since; !at.IsZero() {
		options.From = tasklog.Since(dir, at)
	}
	deliver, finish, err := l.sink(s)
	if err != nil {
		return err
	}
	if l.global.json {
		options.Hold = tasklog.WholeLines
	}
	follower := tasklog.Follow(dir, deliver, options)
	if l.follow && s.Open {
		// However it ends: its logs are what was asked for.
		if _, err := l.run.WaitNotify(ctx, l.sayUnreachable); ctx.Err() != nil {
			return err
		}
	}
	if err := follower.Stop(ctx); err != nil {
		return err
	}
	return finish()
}

// find waits, if the logs are to be followed, until the run has some.
func (l *logReader) find(ctx context.Context) (*starter.Status, string, error) {
	for {
		s, err := l.run.Status(ctx)
		if err != nil {
			return nil, "", err
		}
		if _, err := l.selected.ranks(s); err != nil && !s.Unanswered {
			return nil, "", err
		}
		dir, err := l.runDir(s)
		if err == nil || !l.follow || !s.Open || elsewhere(s) {
			return s, dir, err
		}
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// lookAgain is how soon a run that has no logs yet is looked at again.
const lookAgain = 500 * time.Millisecond

// elsewhere says that the run has logs, wherever they are.
func elsewhere(s *starter.Status) bool {
	return slices.ContainsFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.LogDir != "" })
}

// sink is what shows the lines, and what ends that.
func (l *logReader) sink(s *starter.Status) (deliver func(tasklog.Chunk), finish func() error, err error) {
	names := map[int]string{}
	fields := map[int]spec.PrefixFields{}
	for _, t := range s.Tasks {
		names[t.Rank] = t.Name
		fields[t.Rank] = spec.PrefixFields{Type: t.Type, Index: t.Index}
	}
	if l.global.json {
		lines := tasklog.NewJSONLines(l.out, func(rank int) string { return nameOf(names, rank) })
		return lines.Deliver, lines.Close, nil
	}
	format, err := spec.ParsePrefix(spec.DefaultPrefix)
	if err != nil {
		return nil, nil, err
	}
	console := tasklog.NewConsole(l.out, l.err, tasklog.ConsoleOptions{Prefix: func(rank, _ int) string {
		f, ok := fields[rank]
		if !ok {
			f = spec.PrefixFields{Type: "rank", Index: rank}
		}
		return format.Format(f)
	}})
	return console.Deliver, console.Close, nil
}

func nameOf(names map[int]string, rank int) string {
	if name, ok := names[rank]; ok {
		return name
	}
	return "rank-" + strconv.Itoa(rank)
}

// runDir finds the directory of the run's logs: the processes know theirs, and
// by default they are below our state directory.
func (l *logReader) runDir(s *starter.Status) (string, error) {
	own := tasklog.RunDir(l.logsDir(), s.RunID, s.ExecutionID)
	dirs := []string{own}
	var elsewhere []string
	for _, t := range s.Tasks {
		if t.LogDir != "" {
			// <run dir>/attempt_<n>/<rank>
			dirs = append(dirs, filepath.Dir(filepath.Dir(t.LogDir)))
			elsewhere = append(elsewhere, fmt.Sprintf("%s: %s on %s", t.Name, t.LogDir, dash(t.Host)))
		}
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	if len(elsewhere) > 0 {
		return "", fmt.Errorf("the logs of run %s are not on this host:\n%s", l.run.ID, strings.Join(elsewhere, "\n"))
	}
	return "", fmt.Errorf("run %s has no logs on this host: %w", l.run.ID, &fs.PathError{Op: "open", Path: own, Err: fs.ErrNotExist})
}
