package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/google/uuid"

	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/internal/unexecuted"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Stopped is a run's answer to a stop request.
type Stopped struct {
	RunID string `json:"run_id"`
	State string `json:"state,omitempty"`
	// Tasks lists the tasks with processes that were signaled.
	Tasks    []string       `json:"tasks,omitempty"`
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Error is why the run could not be stopped.
	Error string `json:"error,omitempty"`
	line  string
	// mayLive lists tasks of an ended run with processes that may still be alive.
	mayLive []string
}

// stopFunc stops a run in one of several ways.
type stopFunc func(context.Context, *starter.Run) (Stopped, error)

// stopRuns stops every run, even if some fail to stop. If wait is set, it sends all requests
// before it waits.
func stopRuns(ctx context.Context, a *cli.App, runs []*starter.Run, stop stopFunc, wait bool) error {
	var worst error
	failed := func(r *starter.Run, err error) {
		if cli.CodeOf(err) > cli.CodeOf(worst) {
			worst = &cli.ExitError{Code: cli.CodeOf(err)}
		}
		a.SayError(err)
		if a.Global.JSON {
			_ = a.PrintJSON(Stopped{RunID: r.ID, Error: err.Error()})
		}
	}
	var asked []*starter.Run
	var answers []Stopped
	for _, r := range runs {
		answer, err := ask(ctx, r, stop)
		if err == nil && !wait {
			err = printStopped(a, answer)
		}
		if err != nil {
			failed(r, err)
			continue
		}
		asked, answers = append(asked, r), append(answers, answer)
	}
	if !wait {
		return worst
	}
	for i, r := range asked {
		// A run that ends with a failure also counts as stopped.
		var result *spec.RunResult
		var err error
		if answers[i].State != stateTerminated {
			if result, err = r.WaitNotify(ctx, a.SayUnreachable); result != nil || err == nil {
				answers[i].State, answers[i].line = "stopped", "stopped: "+r.ID
			}
		}
		if result != nil || err == nil {
			err = printStopped(a, answers[i])
		}
		if err == nil && len(answers[i].mayLive) > 0 {
			err = fmt.Errorf("run %s has ended, but it is not known whether its processes have exited", r.ID)
		}
		if err != nil {
			failed(r, err)
		}
	}
	return worst
}

func ask(ctx context.Context, r *starter.Run, stop stopFunc) (Stopped, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.AnswerTimeout)
	defer cancel()
	return stop(ctx, r)
}

// StopSignal stops a run's tasks with their stop signals.
func StopSignal(ctx context.Context, r *starter.Run) (Stopped, error) {
	// For an ended run, the server accepts a cancellation without an error.
	if s, err := r.Summary(ctx); err != nil {
		return Stopped{}, err
	} else if !s.Open {
		return Stopped{}, &starter.EndedError{RunID: r.ID}
	}
	if err := r.Cancel(ctx); err != nil {
		return Stopped{}, err
	}
	nobody, err := unexecuted.Is(ctx, r)
	var stuck *starter.StuckError
	switch {
	case nobody:
		return endUnexecuted(ctx, r)
	case errors.As(err, &stuck) && (stuck.Paused || stuck.Attempt > 1):
		return Stopped{}, fmt.Errorf("%w; `clusterrun stop --abandon %s` ends it without a result", err, r.ID)
	}
	return Stopped{RunID: r.ID, State: "stopping", line: "stopping: " + r.ID}, nil // the run has been asked to stop
}

// unpause resumes the run's workflow if Temporal has paused it. It reports whether it was paused.
func unpause(ctx context.Context, r *starter.Run, namespace string) (bool, error) {
	d, err := r.Describe(ctx)
	info := d.GetWorkflowExecutionInfo()
	if err != nil || !workflowstatus.IsPaused(info.GetStatus()) {
		return false, nil //nolint:nilerr // the stop has the error
	}
	_, err = r.Client().WorkflowService().UnpauseWorkflowExecution(ctx, &workflowservice.UnpauseWorkflowExecutionRequest{
		Namespace: namespace, WorkflowId: r.ID, RunId: info.GetExecution().GetRunId(), Reason: "clusterrun stop", RequestId: uuid.NewString(),
	})
	if err != nil {
		return true, fmt.Errorf("run %s is paused in Temporal, and cannot be unpaused: %w", r.ID, err)
	}
	return true, nil
}

// unpaused returns a function like stop that also works if Temporal has paused the run.
func unpaused(namespace string, stop stopFunc) stopFunc {
	return func(ctx context.Context, r *starter.Run) (Stopped, error) {
		paused, err := unpause(ctx, r, namespace)
		if err != nil {
			return Stopped{}, err
		}
		s, err := stop(ctx, r)
		if paused {
			s.line += " (it was paused in Temporal, and has been unpaused)"
		}
		return s, err
	}
}

// stopAll signals all of a run's tasks and cancels the run, or ends it if no host worker is
// executing it.
func stopAll(q spec.TerminateAllRequest) stopFunc {
	return func(ctx context.Context, r *starter.Run) (Stopped, error) {
		asking, nobodyAnswers := context.WithCancelCause(ctx)
		defer nobodyAnswers(nil)
		go func() {
			if unexecuted.Await(asking, r) == nil {
				nobodyAnswers(errUnexecuted)
			}
		}()
		answer, err := starter.Ask(asking, r, spec.UpdateTerminateAll, q)
		if context.Cause(asking) == errUnexecuted {
			return endUnexecuted(ctx, r)
		}
		if err == nil && len(answer.Problems) > 0 {
			err = errors.New(cli.Messages(answer.Problems))
		}
		s := Stopped{RunID: r.ID, State: "stopping", Tasks: answer.Tasks, line: "stopping: " + r.ID}
		switch {
		case len(answer.Tasks) > 0:
			s.line += ": " + shorten.List(answer.Tasks, cli.MaxNamed)
		case answer.Note != "":
			s.line += ": " + answer.Note
		}
		return s, err
	}
}

var errUnexecuted = errors.New("no host worker executes the run")

// endUnexecuted ends a run without a host worker, which therefore cannot answer requests.
func endUnexecuted(ctx context.Context, r *starter.Run) (Stopped, error) {
	before, _ := r.Status(ctx) // the last report of the tasks
	if err := unexecuted.End(ctx, r, "no host worker executed it when it was stopped"); err != nil {
		return Stopped{}, err
	}
	s := Stopped{RunID: r.ID, State: stateTerminated, line: fmt.Sprintf("ended: %s, without a result: no host worker executes it", r.ID)}
	if s.mayLive = mayLive(before); len(s.mayLive) > 0 {
		s.line += "; if its hosts are only silent, these continue until the hosts answer: " + shorten.List(s.mayLive, cli.MaxNamed)
	}
	return s, nil
}

// mayLive returns an open run's tasks that may still have processes.
func mayLive(s *starter.Status) (tasks []string) {
	if s == nil {
		return nil
	}
	for _, t := range s.Tasks {
		if t.State != spec.TaskEnded && (t.PID != 0 || !t.NextStart.IsZero()) {
			tasks = append(tasks, t.Name+" on "+t.Host)
		}
	}
	return tasks
}

// stateTerminated is the state of a run that was terminated on the server.
const stateTerminated = "terminated"

// abandon terminates a run on the server.
func abandon(reason string) stopFunc {
	return func(ctx context.Context, r *starter.Run) (Stopped, error) {
		err := r.Terminate(ctx, reason)
		return Stopped{RunID: r.ID, State: stateTerminated, line: fmt.Sprintf("ended: %s, without a result", r.ID)}, err
	}
}

// stopGracefully asks a run's tasks to stop on their own.
func stopGracefully(q spec.TogetherRequest) stopFunc {
	return func(ctx context.Context, r *starter.Run) (Stopped, error) {
		s, err := starter.Ask(ctx, r, spec.UpdateStopTogether, q)
		line := fmt.Sprintf("stopping gracefully: %s: %s", r.ID, outcome.StoppingLine(s, time.Now()))
		return Stopped{RunID: r.ID, State: "stopping", Stopping: &s, line: line}, err
	}
}

// giveNotice notifies a run's tasks that they will be stopped.
func giveNotice(q spec.NoticeRequest) stopFunc {
	return func(ctx context.Context, r *starter.Run) (Stopped, error) {
		s, err := starter.Ask(ctx, r, spec.UpdateNotice, q)
		if err != nil {
			return Stopped{}, err
		}
		line := "notified: " + r.ID
		if s.Notice != nil {
			line += ": " + outcome.StopNotice(*s.Notice, time.Now())
		}
		return Stopped{RunID: r.ID, State: "running", Stopping: &s, line: line}, nil
	}
}

func printStopped(a *cli.App, s Stopped) error {
	return a.PrintLine(s, "%v", s.line)
}
