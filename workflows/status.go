package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// status answers the query of that name.
func (r *clusterRun) status() (spec.Status, error) {
	state, tasks := r.machine.Status()
	if r.invalid != nil {
		state = spec.RunEnded // a host refused the spec, and the machine never began
	}
	for i := range tasks {
		t := &tasks[i]
		if h, ok := r.placed[t.Name]; ok {
			t.Host, t.Address = h.name, r.addresses[t.Name]
		}
		if l, ok := r.launches[t.Name]; ok {
			t.Activity = l.id
		}
	}
	status := spec.Status{State: state, Generation: r.machine.Generation(), Started: r.started, Tasks: tasks, Result: r.result}
	if s := r.machine.Stopping(); s.Stop {
		status.Stopping = &s
	}
	return status, nil
}

// detailRows bounds the table in the Web UI: larger runs get counts.
const detailRows = 64

// describe writes the state of the run where the Web UI shows it.
func (r *clusterRun) describe(ctx workflow.Context) {
	status, err := r.status()
	if err != nil {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", status.State)
	if status.Generation > 0 {
		fmt.Fprintf(&b, " · generation %d", status.Generation)
	}
	if r.result != nil {
		fmt.Fprintf(&b, " · %s\n\n%s", r.result.Verdict, r.result.Message)
	}
	if s := status.Stopping; s != nil {
		fmt.Fprintf(&b, "\n\nThe tasks are stopping together: %s.", strings.TrimSuffix(s.String(), "."))
		if !s.Deadline.IsZero() {
			fmt.Fprintf(&b, " They have until %s.", s.Deadline.UTC().Format("2006-01-02 15:04:05 UTC"))
		}
	}
	b.WriteString("\n\n")
	if len(status.Tasks) > detailRows {
		writeCounts(&b, status.Tasks)
	} else {
		writeTable(&b, status.Tasks)
	}
	workflow.SetCurrentDetails(ctx, b.String())
}

func writeTable(b *strings.Builder, tasks []spec.TaskStatus) {
	b.WriteString("| task | state | host | address | exit | cause |\n|---|---|---|---|---|---|\n")
	for _, t := range tasks {
		exit, cause := "", ""
		if t.Exit != nil {
			exit, cause = exitText(*t.Exit), string(t.Exit.Cause)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", t.Name, t.State, t.Host, t.Address, exit, cause)
	}
}

func exitText(e spec.Exit) string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprint(e.ExitCode)
}

func writeCounts(b *strings.Builder, tasks []spec.TaskStatus) {
	states := []spec.TaskState{spec.TaskPending, spec.TaskRunning, spec.TaskStopping, spec.TaskEnded}
	counts := make([]int, len(states))
	for _, t := range tasks {
		for i, s := range states {
			if t.State == s {
				counts[i]++
			}
		}
	}
	b.WriteString("| state | tasks |\n|---|---|\n")
	for i, s := range states {
		fmt.Fprintf(b, "| %s | %d |\n", s, counts[i])
	}
}
