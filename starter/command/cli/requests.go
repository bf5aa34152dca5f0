package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// RequestTimeout limits how long a run may take to answer a request that concerns only a few
	// of its tasks, or to accept any other request.
	RequestTimeout = 15 * time.Second
	// AnswerTimeout limits how long all hosts of a run may take to carry out a request.
	AnswerTimeout = 5 * time.Minute
)

// Request sends a request to the tasks that args name: a run and words for its tasks. It prints
// the tasks that the request reached.
func Request[Q spec.TasksRequest](ctx context.Context, a *App, s *RunSelector, args []string, did string, u spec.Update[Q, spec.RequestAnswer], q Q) error {
	return WithRun(ctx, a, s, args, func(run *starter.Run, tasks []string) error {
		return RequestOf(ctx, a, run, did, tasks, u, q)
	})
}

// RequestOf is like [Request] for the given tasks of run.
func RequestOf[Q spec.TasksRequest](ctx context.Context, a *App, run *starter.Run, did string, tasks []string, u spec.Update[Q, spec.RequestAnswer], q Q) error {
	looking, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	names, err := TasksOf(looking, run, tasks)
	if err != nil {
		return err
	}
	answer, err := AskTasks(ctx, run, names, u, q)
	if err != nil {
		return err
	}
	return PrintAnswer(a, run.ID, did, answer)
}

// TasksOf returns the names of a run's tasks that words select; see [starter.Status.Select].
func TasksOf(ctx context.Context, run *starter.Run, words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	s, err := run.Status(ctx)
	if err != nil {
		return nil, err
	}
	return NamesOf(s, words)
}

// NamesOf is like [TasksOf] but takes the run's status. It keeps the names of unknown tasks,
// which the run refuses.
func NamesOf(s *starter.Status, words []string) ([]string, error) {
	tasks, unknown := s.Select(words)
	names := list.Of(tasks, func(t starter.TaskStatus) string { return t.Name })
	others := slices.DeleteFunc(unknown, func(word string) bool {
		_, _, err := spec.ParseTaskName(word)
		if err == nil {
			names = append(names, word)
		}
		return err == nil
	})
	return names, UnknownTasks(s, others)
}

// UnknownTasks returns an error for words that match no task, or nil if there are no words.
func UnknownTasks(s *starter.Status, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return &UsageError{Problems: list.Of(words, func(word string) string {
		if word == outcome.DoingFailed {
			return fmt.Sprintf("no task of run %s has failed", s.RunID)
		}
		return fmt.Sprintf("run %s has no task, type, rank or host %s; see `clusterrun status %s`", s.RunID, word, s.RunID)
	})}
}

// AskTasks sends a request to a run's tasks. If the run refuses it for some of them, AskTasks
// repeats it for the rest and adds the refusals to the answer's problems. It returns an error if
// the request fails for every task.
func AskTasks[Q spec.TasksRequest](ctx context.Context, run *starter.Run, tasks []string, u spec.Update[Q, spec.RequestAnswer], q Q) (spec.RequestAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	return forTasks(tasks, func(tasks []string) (spec.RequestAnswer, error) {
		return starter.Ask(ctx, run, u, q.For(tasks).(Q))
	})
}

func forTasks(tasks []string, ask func([]string) (spec.RequestAnswer, error)) (spec.RequestAnswer, error) {
	var problems []spec.TaskProblem
	for {
		answer, err := ask(tasks)
		if refused, ok := errors.AsType[*starter.RefusedError](err); ok {
			rest := slices.DeleteFunc(slices.Clone(tasks), func(task string) bool {
				return slices.ContainsFunc(refused.Tasks, func(p spec.TaskProblem) bool { return p.Task == task })
			})
			if len(rest) > 0 && len(rest) < len(tasks) {
				tasks, problems = rest, append(problems, refused.Tasks...)
				continue
			}
		}
		answer.Problems = append(problems, answer.Problems...)
		if err != nil && len(problems) > 0 {
			err = errors.Join(errors.New(Messages(problems)), err)
		}
		return answer, err
	}
}

func Messages(problems []spec.TaskProblem) string {
	lines := list.Of(problems, func(p spec.TaskProblem) string { return p.Message })
	return strings.Join(lines, "\n")
}

// MaxNamed is the maximum number of tasks named in an answer; --json includes them all.
const MaxNamed = 20

// PrintAnswer prints the tasks that a request reached. It returns an [*ExitError] if the request
// failed for some.
func PrintAnswer(a *App, id, did string, answer spec.RequestAnswer) error {
	switch {
	case a.Global.JSON:
		if answer.Tasks == nil {
			answer.Tasks = []string{}
		}
		if err := a.PrintJSON(struct {
			RunID string `json:"run_id"`
			spec.RequestAnswer
		}{id, answer}); err != nil {
			return err
		}
	case len(answer.Tasks) > 0:
		fmt.Fprintf(a.Out, "%s: %s\n", did, shorten.List(answer.Tasks, MaxNamed))
	case answer.Note != "":
		fmt.Fprintf(a.Out, "run %s: %s\n", id, answer.Note)
	case len(answer.Problems) == 0:
		a.Say("run %s: no task had a process", id)
	}
	return LeftOut(a, answer.Problems)
}

// LeftOut prints a request's problems. It returns an [*ExitError] if there are any.
func LeftOut(a *App, problems []spec.TaskProblem) error {
	if len(problems) == 0 {
		return nil
	}
	a.Say("%s", a.Color.Bad(Messages(problems)))
	return &ExitError{Code: exitcode.Machinery}
}
