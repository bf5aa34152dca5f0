package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// secondLook is the default interval between two stack captures.
const secondLook = time.Second

func Stacks(a *cli.App) *cobra.Command {
	how := stacksOptions{again: cli.Duration(secondLook)}
	var runs cli.RunSelector
	cmd := &cobra.Command{
		Use:   "stacks [flags] RUN [TASK...]",
		Short: "Show the stacks of all ranks, and which ones differ",
		Args:  runs.Args(cli.SomeArgs(1, "RUN")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.WithRun(cmd.Context(), a, &runs, args, func(run *starter.Run, tasks []string) error {
				return stacks(cmd.Context(), a, run, tasks, how)
			})
		},
	}
	runs.Flags(cmd)
	cmd.Flags().Var(&how.again, "again", "look again after at most this time, "+spec.MaxAgain.String()+", to tell slow ranks from stuck ones; 0: look once")
	cmd.Flags().BoolVar(&how.files, "files", false, "list the files with the full stacks")
	cmd.Flags().BoolVar(&how.show, "show", false, "print the full stacks; if some cannot be read from this machine, name them and exit with 125")
	cmd.MarkFlagsMutuallyExclusive("files", "show")
	return cmd
}

// stacksOptions holds the flags of [Stacks].
type stacksOptions struct {
	files, show bool
	again       cli.Duration
}

// stacksOfTask describes the captured stacks of one task.
type stacksOfTask struct {
	Task string `json:"task"`
	Host string `json:"host,omitempty"`
	File string `json:"file"`
	// Text is the file's content. It is set with --show if the file can be read.
	Text *string `json:"text,omitempty"`
	rank int
}

func stacks(ctx context.Context, a *cli.App, run *starter.Run, tasks []string, how stacksOptions) error {
	tasks, err := cli.TasksOf(ctx, run, tasks)
	if err != nil {
		return err
	}
	answer, err := cli.AskTasks(ctx, run, tasks, spec.UpdateCaptureStacks, spec.StacksRequest{Again: how.again.Spec()})
	if starter.IsError[*starter.EndedError](err) {
		return keptStacks(ctx, a, run, tasks, how.show)
	} else if err != nil {
		return err
	}
	captured := make([]stacksOfTask, 0, len(answer.Files))
	for task, file := range answer.Files {
		captured = append(captured, stacksOfTask{Task: task, File: file})
	}
	// If the hosts are unknown, the paths are still printed.
	s, statusErr := run.Status(ctx)
	if statusErr == nil {
		addHosts(captured, s)
	}
	read := run.Files(cmp.Or(s, &starter.Status{}))
	defer read.Close()
	slices.SortFunc(captured, func(x, y stacksOfTask) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.Task, y.Task))
	})
	// Tasks with a problem are reported with their problem.
	asked := slices.DeleteFunc(slices.Clone(tasks), func(task string) bool {
		return slices.ContainsFunc(answer.Problems, func(p spec.TaskProblem) bool { return p.Task == task })
	})
	var found *stacktree.Findings
	if len(captured) > 0 || len(answer.Stacks.Roots) > 0 {
		found = new(Explained(answer, s, tasks))
	}
	if !how.files && !how.show && !a.Global.JSON && found != nil {
		err = found.Write(a.Out)
	} else {
		err = printStacks(ctx, a, run.ID, asked, captured, found, how.show, read)
	}
	if err != nil {
		return err
	}
	if answer.Note != "" {
		a.Say("%s", answer.Note)
	}
	return cli.LeftOut(a, answer.Problems)
}

// keptStacks shows the last captured stacks of an ended run's tasks.
func keptStacks(ctx context.Context, a *cli.App, run *starter.Run, tasks []string, show bool) error {
	s, err := run.Status(ctx)
	if err != nil {
		return err
	}
	var kept []stacksOfTask
	read := run.Files(s)
	defer read.Close()
	for _, t := range s.Tasks {
		if len(tasks) > 0 && !slices.Contains(tasks, t.Name) || t.LogDir == "" || read.Here(t.LogDir) != nil {
			continue
		}
		files, _ := fs.Glob(os.DirFS(t.LogDir), "stacks-*.txt") // sorted by time
		if len(files) > 0 {
			kept = append(kept, stacksOfTask{Task: t.Name, Host: t.Host, File: filepath.Join(t.LogDir, files[len(files)-1])})
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("run %s has ended, and this machine has no stacks of it; stacks are captured while a run is open, by this command or when its timeout passes", run.ID)
	}
	return printStacks(ctx, a, run.ID, tasks, kept, nil, show, read)
}

// Explained compares the stacks in an answer. s is nil if the status is unknown; asked is empty
// if all tasks were asked.
func Explained(answer spec.RequestAnswer, s *starter.Status, asked []string) stacktree.Findings {
	var all, wanted []stacktree.Task
	if s != nil {
		for _, t := range s.Tasks {
			task := stacktree.Task{Rank: t.Rank, Host: t.Host, Ended: t.Exit != nil}
			all = append(all, task)
			if len(asked) == 0 || slices.Contains(asked, t.Name) {
				wanted = append(wanted, task)
			}
		}
	}
	found := stacktree.Explain(stacktree.WithMissing(answer.Stacks, wanted), stacktree.HostOf(all))
	found.Motion = answer.Motion
	return found
}

func addHosts(captured []stacksOfTask, s *starter.Status) {
	for i := range captured {
		at := slices.IndexFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.Name == captured[i].Task })
		if at >= 0 {
			captured[i].Host, captured[i].rank = s.Tasks[at].Host, s.Tasks[at].Rank
		}
	}
}

func printStacks(ctx context.Context, a *cli.App, id string, asked []string, captured []stacksOfTask, found *stacktree.Findings, show bool, read *files.Files) error {
	var elsewhere []string
	if show {
		for i := range captured {
			switch text, err := read.Read(ctx, captured[i].Host, captured[i].File); {
			case err == nil:
				shown := string(text)
				captured[i].Text = &shown
			case errors.Is(err, fs.ErrNotExist):
				elsewhere = append(elsewhere, fmt.Sprintf("%s: %s on %s", captured[i].Task, captured[i].File, cli.OrDash(captured[i].Host)))
			default:
				elsewhere = append(elsewhere, fmt.Sprintf("%s: %s on %s: %s", captured[i].Task, captured[i].File, cli.OrDash(captured[i].Host), err))
			}
		}
	}
	switch {
	case a.Global.JSON:
		out := map[string]any{"run_id": id, "stacks": captured}
		if found != nil {
			out["findings"] = found
		}
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	case show:
		showStacks(a, captured)
	case len(captured) > 0:
		w := cli.NewTable(a.Out, "TASK", "HOST", "FILE")
		for _, c := range captured {
			w.Row(c.Task, cli.OrDash(c.Host), c.File)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(elsewhere) > 0 {
		a.Say("omitted because it cannot be read from this machine:\n%s", strings.Join(elsewhere, "\n"))
	}
	if len(captured) == 0 {
		a.Say("run %s: no task has a process", id)
		return nil
	}
	var without []string
	for _, name := range asked {
		if !slices.ContainsFunc(captured, func(c stacksOfTask) bool { return c.Task == name }) {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		a.Say("run %s: no process can be examined: %s", id, strings.Join(without, ", "))
	}
	if len(elsewhere) > 0 {
		return &cli.ExitError{Code: exitcode.Machinery}
	}
	return nil
}

func showStacks(a *cli.App, captured []stacksOfTask) {
	shown := 0
	for _, c := range captured {
		if c.Text == nil {
			continue
		}
		if shown++; shown > 1 {
			fmt.Fprintln(a.Out)
		}
		fmt.Fprint(a.Out, *c.Text)
	}
}
