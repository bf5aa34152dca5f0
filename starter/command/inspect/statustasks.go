package inspect

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

const (
	// maxRows is the maximum number of tasks that get their own line by default.
	maxRows = 40
	// maxHosts is the maximum number of hosts in a summary.
	maxHosts = 16
)

// printTasks writes a line for each task.
func printTasks(out io.Writer, tasks []starter.TaskStatus) {
	shown := slices.ContainsFunc(tasks, func(t starter.TaskStatus) bool { return t.Progress != nil })
	heard := slices.ContainsFunc(tasks, func(t starter.TaskStatus) bool { return !t.LastOutput.IsZero() })
	heading := []any{"TASK", "STATE", "HOST", "PID", "RESTARTS", "EXIT", "CAUSE"}
	if heard {
		heading = append(heading, "LAST OUTPUT")
	}
	if shown {
		heading = append(heading, "PROGRESS")
	}
	w := cli.NewTable(out, heading...)
	for _, t := range tasks {
		exit, cause := report.ExitColumns(t.Exit)
		state := string(t.State)
		if !t.NextStart.IsZero() {
			state = outcome.DoingRestart
		}
		row := []any{t.Name, cli.OrDash(state), cli.OrDash(t.Host), number(t.PID), t.Restarts, exit, cause}
		if heard {
			row = append(row, lastOutput(t.LastOutput))
		}
		if shown {
			row = append(row, report.ProgressColumn(t.Progress))
		}
		w.Row(row...)
	}
	w.Flush()
}

// lastOutput returns the age of a process's last output.
func lastOutput(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return time.Since(at).Round(time.Second).String() + " ago"
}

// printSummary writes the number of tasks in each state, and the unusual tasks.
func printSummary(out io.Writer, s *starter.Status) {
	words := s.Doing()
	fmt.Fprintf(out, "%s: %s\n\n", units.Count(len(s.Tasks), "task", "tasks"), outcome.TallyOf(words))
	printTallies(out, s.Tasks, words)
	odd := outcome.Odd(words)
	if len(odd) == 0 {
		fmt.Fprintln(out, "\nall tasks have the same state; --all lists them")
		return
	}
	tasks := make([]starter.TaskStatus, min(len(odd), maxRows))
	for i := range tasks {
		tasks[i] = s.Tasks[odd[i]]
	}
	fmt.Fprintln(out)
	printTasks(out, tasks)
	if more := len(odd) - len(tasks); more > 0 {
		fmt.Fprintf(out, "and %d more; --failed, --on-host, --task and --all list them\n", more)
	}
}

// printTallies writes the number of tasks in each state per host. If there are many hosts, it
// writes those with the most unusual tasks.
func printTallies(out io.Writer, tasks []starter.TaskStatus, words []string) {
	on := map[string]outcome.Tally{}
	odd := map[string]int{}
	for i, t := range tasks {
		if on[t.Host] == nil {
			on[t.Host] = outcome.Tally{}
		}
		on[t.Host][words[i]]++
	}
	for _, i := range outcome.Odd(words) {
		odd[tasks[i].Host]++
	}
	hosts := slices.SortedFunc(maps.Keys(on), func(a, b string) int {
		return cmp.Or(cmp.Compare(odd[b], odd[a]), strings.Compare(a, b))
	})
	shown := hosts[:min(len(hosts), maxHosts)]
	columns := outcome.TallyOf(words).Words()
	w := cli.NewTable(out, "HOST", "TASKS", strings.ToUpper(strings.Join(columns, "\t")))
	for _, h := range shown {
		n, counts := 0, []any{}
		for _, word := range columns {
			n += on[h][word]
			counts = append(counts, number(on[h][word]))
		}
		w.Row(append([]any{cli.OrDash(h), n}, counts...)...)
	}
	w.Flush()
	if more := len(hosts) - len(shown); more > 0 {
		fmt.Fprintf(out, "and %s\n", units.Count(more, "host more", "hosts more"))
	}
}

// taskFlags lists the flags that choose a run's tasks.
var taskFlags = []string{"all", "failed", "on-host", "task"}

// taskChoice selects tasks of a run.
type taskChoice struct {
	all, failed bool
	host        string
	names       []string
	given       func(flag string) bool
}

func (c *taskChoice) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&c.all, "all", false, "list every task")
	fs.BoolVar(&c.failed, "failed", false, "only tasks that failed or were lost with their host")
	fs.StringVar(&c.host, "on-host", "", "only tasks on host `NAME`")
	fs.StringSliceVar(&c.names, "task", nil, "only these tasks (`TASK`); may be repeated")
	for _, narrower := range taskFlags[1:] {
		cmd.MarkFlagsMutuallyExclusive(taskFlags[0], narrower)
	}
	c.given = fs.Changed
}

// each reports whether every selected task gets a line.
func (c *taskChoice) each() bool { return c.all || c.narrow() }

// narrow reports whether the choice may exclude tasks.
func (c *taskChoice) narrow() bool { return c.failed || c.given("on-host") || c.given("task") }

// of returns a run's selected tasks.
func (c *taskChoice) of(s *starter.Status) ([]starter.TaskStatus, error) {
	chosen, unknown := s.Select(c.names)
	if len(unknown) > 0 {
		return nil, cli.UnknownTasks(s, unknown)
	}
	wanted := map[int]bool{}
	for _, t := range chosen {
		wanted[t.Rank] = true
	}
	hosts := map[string]bool{}
	tasks := []starter.TaskStatus{}
	words := s.Doing()
	for i, t := range s.Tasks {
		hosts[t.Host] = true
		if wanted[t.Rank] && (!c.given("on-host") || t.Host == c.host) && (!c.failed || words[i] == outcome.DoingFailed) {
			tasks = append(tasks, t)
		}
	}
	delete(hosts, "")
	if c.given("on-host") && !hosts[c.host] && len(hosts) > 0 {
		return nil, cli.Usagef("--on-host %s: run %s has no tasks there; it has tasks on %s", c.host, s.RunID, report.SomeOf(slices.Sorted(maps.Keys(hosts))))
	}
	return tasks, nil
}
