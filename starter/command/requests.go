package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// requestTimeout is how long a run has to answer a request.
const requestTimeout = 15 * time.Second

// request connects, makes a request to a run for some tasks, and says which of them
// it reached. A request that names no tasks has none.
func request(ctx context.Context, a *app, id, did string, tasks []string, ask func(context.Context, *starter.Run, []string) (spec.RequestAnswer, error)) error {
	c, _, err := a.dialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	run := starter.Get(c, id, "")
	if tasks, err = tasksOf(ctx, run, tasks); err != nil {
		return err
	}
	answer, err := forTasks(tasks, func(tasks []string) (spec.RequestAnswer, error) { return ask(ctx, run, tasks) })
	if err != nil {
		return err
	}
	return printAnswer(a, id, did, answer)
}

// rankOf returns the rank that a name of a task is, as in torchrun and MPI: a bare number.
func rankOf(name string) (rank int, ok bool) {
	n, err := strconv.ParseUint(name, 10, 31)
	return int(n), err == nil
}

// tasksOf returns the names of tasks that are given by names or ranks.
func tasksOf(ctx context.Context, run *starter.Run, given []string) ([]string, error) {
	if !slices.ContainsFunc(given, func(name string) bool { _, ok := rankOf(name); return ok }) {
		return given, nil
	}
	s, err := run.Status(ctx)
	if err != nil {
		return nil, err
	}
	return namesOfRanks(s, given)
}

// namesOfRanks replaces ranks by the names of the run's tasks.
func namesOfRanks(s *starter.Status, given []string) ([]string, error) {
	e := &usageError{}
	names := slices.Clone(given)
	for i, name := range names {
		rank, ok := rankOf(name)
		if !ok {
			continue
		}
		at := slices.IndexFunc(s.Tasks, func(t starter.TaskStatus) bool { return t.Rank == rank })
		if at < 0 {
			e.problems = append(e.problems, fmt.Sprintf("run %s has no rank %d; `clusterrun status %s` shows its tasks", s.RunID, rank, s.RunID))
			continue
		}
		names[i] = s.Tasks[at].Name
	}
	if len(e.problems) > 0 {
		return nil, e
	}
	return names, nil
}

// forTasks makes a request for tasks. Those for which the run refuses it are left
// out, and are problems of the answer, so that it is met for the others. The error
// is that of a request that was met for none.
func forTasks(tasks []string, ask func([]string) (spec.RequestAnswer, error)) (spec.RequestAnswer, error) {
	var problems []spec.TaskProblem
	for {
		answer, err := ask(tasks)
		var refused *starter.RefusedError
		if errors.As(err, &refused) {
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
			err = errors.Join(errors.New(messages(problems)), err)
		}
		return answer, err
	}
}

func messages(problems []spec.TaskProblem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Message
	}
	return strings.Join(lines, "\n")
}

func printAnswer(a *app, id, did string, answer spec.RequestAnswer) error {
	switch {
	case a.global.json:
		if answer.Tasks == nil {
			answer.Tasks = []string{}
		}
		if err := a.printJSON(struct {
			RunID string `json:"run_id"`
			spec.RequestAnswer
		}{id, answer}); err != nil {
			return err
		}
	case len(answer.Tasks) > 0:
		fmt.Fprintf(a.out, "%s: %s\n", did, strings.Join(answer.Tasks, ", "))
	case answer.Note != "":
		fmt.Fprintf(a.out, "run %s: %s\n", id, answer.Note)
	case len(answer.Problems) == 0:
		a.say("run %s: no task had a process to reach", id)
	}
	return leftOut(a, answer.Problems)
}

// leftOut says for which tasks a request could not be met, and returns the exit code
// that this has.
func leftOut(a *app, problems []spec.TaskProblem) error {
	if len(problems) == 0 {
		return nil
	}
	a.say("%s", a.color.bad(messages(problems)))
	return &exitError{code: exitcode.Machinery}
}
