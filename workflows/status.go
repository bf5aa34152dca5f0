package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// answerStatusBy installs the status query's handler.
func answerStatusBy(ctx workflow.Context, answer func() (spec.Status, error)) error {
	return workflow.SetQueryHandlerWithOptions(ctx, spec.QueryStatus, answer,
		workflow.QueryHandlerOptions{Description: "Where the run and its tasks are."})
}

// resultOfRefusal returns the result that the status query reports for a run with a refused spec,
// because the run itself fails without a result. The host that refused the spec may have reported
// an exit code.
func resultOfRefusal(err error) *spec.RunResult {
	var known spec.RunResult
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.HasDetails() {
		_ = app.Details(&known)
	}
	return &spec.RunResult{
		Verdict: spec.VerdictFailed, Message: reasonOf(err), ErrorType: spec.ErrInvalidRunSpec, ExitCode: cmp.Or(known.ExitCode, 2), Tasks: []spec.TaskResult{},
	}
}

// answerStatus answers the status query.
func (v *reporter) answerStatus() (spec.Status, error) {
	s := v.status()
	if v.invalid != nil {
		s.Result = resultOfRefusal(v.invalid)
	}
	if len(s.Tasks) < manyTasks {
		return s, nil
	}
	each := func(cut func(*spec.TaskStatus)) func() {
		return func() {
			for i := range s.Tasks {
				cut(&s.Tasks[i])
			}
		}
	}
	shorten.ToFit(&s, maxStatus,
		each(func(t *spec.TaskStatus) { t.Exit = t.Exit.Bare() }),
		each(func(t *spec.TaskStatus) { t.Address = "" }),
		each(func(t *spec.TaskStatus) { t.Exit = nil }),
	)
	return s, nil
}

const (
	// maxStatus limits the answer to the query, in bytes, because the server accepts 2 MiB.
	maxStatus = 3 << 19
	// The answer always fits for fewer than manyTasks tasks.
	manyTasks = 500
)

// status returns the run's and its tasks' states.
func (v *reporter) status() spec.Status {
	state, tasks := v.machine.Status()
	if v.invalid != nil {
		state = spec.RunEnded // a host refused the spec, and the machine never started
	}
	for i := range tasks {
		t := &tasks[i]
		if h, ok := v.placed[t.Name]; ok {
			t.Host, t.Address = h.Name, v.addresses[t.Name]
		}
		if l, ok := v.launches[t.Name]; ok {
			t.Activity = l.open
		}
	}
	status := spec.Status{State: state, Generation: v.machine.Generation(), Started: v.started, Tasks: tasks, Archive: v.spec.Ship.Archive, SilenceIgnoresCPU: v.spec.SilenceIgnoresCPU, Result: v.result}
	status.GroupRestarts = v.machine.GroupRestarts()
	status.Preemptions, status.PendingSince, status.Notice = v.machine.Preemptions(), v.pendingSince, v.machine.Notice()
	status.Elastic = v.elasticStatus()
	if len(v.hosts) > 0 && v.result == nil {
		status.OnDisconnect = spec.OnDisconnectKeep
		status.GivenUpAfter = spec.Duration(v.placer.carrierOn(v.hosts[0]).givenUpAfter())
		if b := v.bounds; b != nil {
			status.OnDisconnect = spec.OnDisconnectWithOutage(b.Short, b.Long)
		} else if after := v.spec.StopAfter(len(v.hosts)); after > 0 {
			status.OnDisconnect = spec.OnDisconnectStop(after)
		}
	}
	for _, h := range slices.Concat(v.former, v.hosts) {
		if h.out.Service != nil {
			status.Services = append(status.Services, *h.out.Service)
		}
	}
	if v.result == nil {
		status.Stacks = v.machine.Findings()
	}
	if s := v.machine.Stopping(); s.Stop {
		status.Stopping = &s
	}
	return status
}

const (
	// detailRows limits the table in the Web UI. Larger runs get a table of counts.
	detailRows = 64
	// maxDetailText limits each string from users and programs in the details.
	maxDetailText = 4000
	// maxPath limits each path in the details.
	maxPath = 300
)

// describe writes the run's state for the Web UI.
func (v *reporter) describe(ctx workflow.Context) {
	status := v.status()
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", status.State)
	if status.Generation > 0 {
		fmt.Fprintf(&b, " · generation %d", status.Generation)
	}
	if status.Elastic != nil {
		fmt.Fprintf(&b, " · %s", status.Elastic)
	}
	if v.result != nil {
		text := strings.Join(append([]string{v.result.Message}, outcome.Lines(v.result, outcome.Options{})...), "\n")
		fmt.Fprintf(&b, " · %s\n%s", v.result.Verdict, markdown.Block(text, maxDetailText))
	}
	if status.Stacks != nil {
		b.WriteString("\n\nWhat the tasks were doing:\n" + markdown.Block(status.Stacks.String(), maxDetailText))
	}
	if s := status.Stopping; s != nil {
		b.WriteString("\n\nThe tasks are stopping gracefully")
		if !s.Deadline.IsZero() {
			fmt.Fprintf(&b, ", and have until %s", s.Deadline.UTC().Format("2006-01-02 15:04:05 UTC"))
		}
		b.WriteString(":\n" + markdown.Block(s.String(), maxDetailText))
	}
	b.WriteString("\n\n")
	if len(status.Tasks) > detailRows {
		writeCounts(&b, status.Tasks)
	} else {
		writeTable(&b, status.Tasks)
		writeLogs(&b, status.Tasks)
	}
	info := workflow.GetInfo(ctx)
	b.WriteString("\n" + markdown.Below("barriers across hosts, and closures", info.Namespace, info.WorkflowExecution.ID))
	workflow.SetCurrentDetails(ctx, b.String())
}

// writeTable writes the columns that fit on the page, which the Web UI cuts off on the right.
func writeTable(b *strings.Builder, tasks []spec.TaskStatus) {
	b.WriteString("| task | state | host | address | pid | restarts | exit | why |\n|---|---|---|---|---|---|---|---|\n")
	for _, t := range tasks {
		address := markdown.Cell(t.Address)
		var pid, restarts, exit, why string
		if t.Exit != nil {
			e := *t.Exit
			address, exit, why, restarts = "", exitText(e), e.Cause.Words(), fmt.Sprint(e.Restart)
			if e.PID != 0 {
				pid = fmt.Sprint(e.PID)
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", markdown.Cell(t.Name), t.State, markdown.Cell(t.Host), address, pid, restarts, exit, why)
	}
}

// writeLogs writes the log directories of ended tasks. For a running task, the activity's details
// contain the log directory and the pid.
func writeLogs(b *strings.Builder, tasks []spec.TaskStatus) {
	var lines []string
	for _, t := range tasks {
		if t.Exit != nil && t.Exit.LogDir != "" {
			lines = append(lines, t.Exit.LogDir)
		}
	}
	if len(lines) > 0 {
		b.WriteString("\nLogs, on their hosts:\n" + markdown.Block(strings.Join(lines, "\n"), detailRows*maxPath))
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
