package command

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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stacksTimeout is how long a run has for captures: longer than for other
// requests, because its processes are given time to answer.
const stacksTimeout = 30 * time.Second

func (a *app) stacksCommand() *cobra.Command {
	var show bool
	var choice runChoice
	cmd := &cobra.Command{
		Use:   "stacks [flags] RUN [TASK...]",
		Short: "Save the stacks of the processes of a run",
		Long: `Saves what the processes of a run, or of the named tasks, are doing now, and prints where:
one text file for each task, beside its logs on its host. The file has every process of the
task with each of its threads: state, CPU time, system call and, if the host worker is
root, kernel stack. The processes continue.

Python programs that import the module clusterrun add their Python stacks; see
` + "`clusterrun task python --help`" + `. When a run times out, the stacks are saved automatically
before anything is stopped. For a run that has ended, this shows the latest stacks on this
machine.

` + severalTasks + `

` + exitCodesOfRequests,
		Example: `  clusterrun stacks iris-x2k4
  clusterrun stacks --show iris-x2k4 worker-1
  clusterrun stacks --json iris-x2k4 | jq -r '.stacks[].file'`,
		Args: choice.args(someArgs(1, "RUN")),
		RunE: func(cmd *cobra.Command, args []string) error {
			tasks := args
			if !choice.last {
				tasks = args[1:]
			}
			if err := checkTasks(tasks); err != nil {
				return err
			}
			c, _, err := a.dialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			run, tasks, err := choice.find(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			return a.stacks(cmd.Context(), run, tasks, show)
		},
	}
	choice.flags(cmd)
	cmd.Flags().BoolVar(&show, "show", false, "print the stacks; if some cannot be read from here, name them and exit with 125")
	return cmd
}

// stacksOfTask is what was captured of one task.
type stacksOfTask struct {
	Task string `json:"task"`
	Host string `json:"host,omitempty"`
	File string `json:"file"`
	// Text is what is in the file, with --show and where it can be read.
	Text *string `json:"text,omitempty"`
	rank int
}

func (a *app) stacks(ctx context.Context, run *starter.Run, tasks []string, show bool) error {
	ctx, cancel := context.WithTimeout(ctx, stacksTimeout)
	defer cancel()
	answer, err := forTasks(tasks, func(tasks []string) (spec.RequestAnswer, error) {
		return run.CaptureStacks(ctx, spec.StacksRequest{Tasks: tasks})
	})
	var ended *starter.EndedError
	if errors.As(err, &ended) {
		return a.keptStacks(ctx, run, tasks, show)
	} else if err != nil {
		return err
	}
	captured := make([]stacksOfTask, 0, len(answer.Files))
	for task, file := range answer.Files {
		captured = append(captured, stacksOfTask{Task: task, File: file})
	}
	// Without the hosts the paths are still worth something.
	var read stackReader
	if s, err := run.Status(ctx); err == nil {
		addHosts(captured, s)
		read = a.stackReader(s)
	}
	slices.SortFunc(captured, func(x, y stacksOfTask) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.Task, y.Task))
	})
	// Of those with a problem it is said why there is nothing.
	asked := slices.DeleteFunc(slices.Clone(tasks), func(task string) bool {
		return slices.ContainsFunc(answer.Problems, func(p spec.TaskProblem) bool { return p.Task == task })
	})
	if err := a.printStacks(ctx, run.ID, asked, captured, show, read); err != nil {
		return err
	}
	return a.leftOut(answer.Problems)
}

// keptStacks shows what was captured last of tasks of a run that has ended.
func (a *app) keptStacks(ctx context.Context, run *starter.Run, tasks []string, show bool) error {
	s, err := run.Status(ctx)
	if err != nil {
		return err
	}
	var kept []stacksOfTask
	read := a.stackReader(s)
	for _, t := range s.Tasks {
		if len(tasks) > 0 && !slices.Contains(tasks, t.Name) || t.LogDir == "" || !read.isHere(t.Host, t.LogDir) {
			continue
		}
		files, _ := fs.Glob(os.DirFS(t.LogDir), "stacks-*.txt") // by time
		if len(files) > 0 {
			kept = append(kept, stacksOfTask{Task: t.Name, Host: t.Host, File: filepath.Join(t.LogDir, files[len(files)-1])})
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("run %s has ended, and this machine has no stacks of it; they are captured while a run goes on, by this command or when its timeout passes", run.ID)
	}
	return a.printStacks(ctx, run.ID, tasks, kept, show, read)
}

func addHosts(captured []stacksOfTask, s *starter.Status) {
	for i := range captured {
		at := slices.IndexFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.Name == captured[i].Task })
		if at >= 0 {
			captured[i].Host, captured[i].rank = s.Tasks[at].Host, s.Tasks[at].Rank
		}
	}
}

func (a *app) printStacks(ctx context.Context, id string, asked []string, captured []stacksOfTask, show bool, read stackReader) error {
	var elsewhere []string
	if show {
		for i := range captured {
			switch text, err := read.read(ctx, captured[i]); {
			case err == nil:
				captured[i].Text = &text
			case errors.Is(err, fs.ErrNotExist):
				elsewhere = append(elsewhere, fmt.Sprintf("%s: %s on %s", captured[i].Task, captured[i].File, dash(captured[i].Host)))
			default:
				elsewhere = append(elsewhere, fmt.Sprintf("%s: %s on %s: %s", captured[i].Task, captured[i].File, dash(captured[i].Host), err))
			}
		}
	}
	switch {
	case a.global.json:
		if err := a.printJSON(map[string]any{"run_id": id, "stacks": captured}); err != nil {
			return err
		}
	case show:
		a.showStacks(captured)
	case len(captured) > 0:
		w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "TASK\tHOST\tFILE")
		for _, c := range captured {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Task, dash(c.Host), c.File)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(elsewhere) > 0 {
		a.say("what cannot be read from here is left out:\n%s", strings.Join(elsewhere, "\n"))
	}
	if len(captured) == 0 {
		a.say("run %s: no task has a process to look at", id)
		return nil
	}
	var without []string
	for _, name := range asked {
		if !slices.ContainsFunc(captured, func(c stacksOfTask) bool { return c.Task == name }) {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		a.say("run %s: no process to look at: %s", id, strings.Join(without, ", "))
	}
	if len(elsewhere) > 0 {
		return &exitError{code: exitMachinery}
	}
	return nil
}

func (a *app) showStacks(captured []stacksOfTask) {
	shown := 0
	for _, c := range captured {
		if c.Text == nil {
			continue
		}
		if shown++; shown > 1 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprint(a.out, *c.Text)
	}
}
