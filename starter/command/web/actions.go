package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/control"
	"github.com/clusterrun/clusterrun/starter/command/inspect"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// The names of the actions, which are the last part of their addresses.
const (
	actionStacks  = "stacks"
	actionRestart = "restart"
	actionSignal  = "signal"
	actionStop    = "stop"
	actionKill    = "kill"
)

// actsWithin limits an action. It gives processes time to answer.
const actsWithin = 30 * time.Second

// signals lists the signals that a page offers.
var signals = []string{"SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT", "SIGSTOP", "SIGCONT", "SIGKILL"}

// actionsOf returns the actions on an open run.
func actionsOf(s *starter.Status) []page.Action {
	tasks := func(without string) page.Field {
		return page.Field{Name: "tasks", Label: "Tasks, by name, type or rank; " + without}
	}
	actions := []page.Action{
		{Name: actionStacks, Label: "Stacks", Question: "Capture what the tasks are doing now?", Effect: "Stacks are captured twice within a second. The processes keep running.", Fields: []page.Field{tasks("all if empty")}},
		{Name: actionRestart, Label: "Restart", Question: "Restart tasks of " + s.RunID + "?", Effect: "Their processes are stopped and restarted on their hosts. This does not count towards max_restarts.", Danger: true, Fields: []page.Field{tasks("all if empty")}},
		{Name: actionSignal, Label: "Signal", Question: "Send a signal to tasks of " + s.RunID + "?", Effect: "A task that exits because of it has failed.", Danger: true, Fields: []page.Field{{Name: "signal", Label: "Signal", Value: signals[0], Options: signals}, tasks("all if empty")}},
		{Name: actionStop, Label: "Stop", Question: "Stop " + s.RunID + "?", Effect: "All tasks get the spec's stop signal, and SIGKILL after its grace. The run ends.", Danger: true},
		{Name: actionKill, Label: "Kill", Question: "Kill all tasks of " + s.RunID + "?", Effect: "All tasks get SIGKILL, without time to save their work. The run ends.", Danger: true},
	}
	if s.Sweep != nil {
		actions = slices.DeleteFunc(actions, func(a page.Action) bool { return a.Name != actionStop })
		actions[0].Effect = "No more trials start, and the running ones are stopped."
	}
	for i := range actions {
		actions[i].URL = page.RunURL(s.RunID) + "/" + actions[i].Name
	}
	return actions
}

// maxForm limits an action's form, in bytes.
const maxForm = 64 << 10

// act carries out an action on a run.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case s.ReadOnly:
		s.message(w, http.StatusForbidden, "These pages are read-only", "They were started with --read-only.")
		return
	case r.ParseForm() != nil || !s.gate.sentForm(r):
		s.message(w, http.StatusForbidden, "Nothing was done", "The request did not come from a form of these pages. Load the page again.")
		return
	}
	run, err := s.run(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actsWithin)
	defer cancel()
	note, err := s.carryOut(ctx, run, r.PathValue("action"), r.PostForm)
	if err != nil {
		note = outcome.Fact{Severity: outcome.Bad, Text: err.Error()}
	}
	s.runs.forget(keyOf(run))
	key := rand.Text()
	s.notes.put(key, note)
	to := page.RunURL(run.ID) + "?note=" + url.QueryEscape(key)
	if r.PathValue("action") == actionStacks && err == nil {
		to += "#stacks"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// carryOut sends a request to a run, like the command with the same name.
func (s *Server) carryOut(ctx context.Context, run *starter.Run, action string, form url.Values) (outcome.Fact, error) {
	done := func(format string, args ...any) (outcome.Fact, error) {
		return outcome.Fact{Severity: outcome.Good, Text: fmt.Sprintf(format, args...)}, nil
	}
	switch action {
	case actionStop:
		if _, err := control.StopSignal(ctx, run); err != nil {
			return outcome.Fact{}, err
		}
		return done("The run is stopping.")
	case actionKill:
		answer, err := starter.Ask(ctx, run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		return noteOf("Killed", answer, err)
	}
	tasks, err := chosenTasks(ctx, run, form.Get("tasks"), action != actionStacks)
	if err != nil {
		return outcome.Fact{}, err
	}
	switch action {
	case actionRestart:
		answer, err := cli.AskTasks(ctx, run, tasks, spec.UpdateRestartTask, spec.TaskRequest{})
		return noteOf("Restarted", answer, err)
	case actionSignal:
		signal := form.Get("signal")
		if _, err := spec.SignalNumber(signal); err != nil {
			return outcome.Fact{}, err
		}
		answer, err := cli.AskTasks(ctx, run, tasks, spec.UpdateSignalTask, spec.SignalRequest{Signal: signal})
		return noteOf("Sent "+signal+" to", answer, err)
	case actionStacks:
		again := spec.Duration(time.Second)
		answer, err := cli.AskTasks(ctx, run, tasks, spec.UpdateCaptureStacks, spec.StacksRequest{Again: &again})
		if err == nil {
			// Without the status, the tasks' hosts are unknown.
			status, _ := run.Status(ctx)
			s.stacks.put(keyOf(run), inspect.Explained(answer, status, tasks))
		}
		return noteOf("Captured the stacks of", answer, err)
	}
	return outcome.Fact{}, cli.Usagef("there is no action %q", action)
}

// noteOf describes a run's answer.
func noteOf(did string, answer spec.RequestAnswer, err error) (outcome.Fact, error) {
	if err != nil {
		return outcome.Fact{}, err
	}
	note := outcome.Fact{Severity: outcome.Good, Text: did + " " + report.SomeOf(answer.Tasks) + "."}
	switch {
	case answer.Note != "":
		note.Text = answer.Note
	case len(answer.Tasks) == 0:
		note.Severity, note.Text = outcome.Warning, "No task had a process."
	}
	for _, p := range answer.Problems {
		note.Severity, note.Items = outcome.Warning, append(note.Items, p.Message)
	}
	return note, nil
}

// chosenTasks returns the names of the tasks in a form's field. If it is empty, the result is
// all tasks if all is set, and nil otherwise.
func chosenTasks(ctx context.Context, run *starter.Run, field string, all bool) ([]string, error) {
	field = strings.Join(strings.Fields(strings.ReplaceAll(field, ",", " ")), ",")
	if field == "" && !all {
		return nil, nil
	}
	status, err := run.Status(ctx)
	if err != nil {
		return nil, err
	}
	if field == "" {
		names := list.Of(status.Tasks, func(t starter.TaskStatus) string { return t.Name })
		return names, nil
	}
	return outputQuery{page.OutputFilter{Ranks: field}}.names(status)
}
