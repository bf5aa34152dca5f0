package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A wrong name among several does not keep a request from the other tasks.
func TestARequestIsMetForTheTasksForWhichItCanBe(t *testing.T) {
	wrong := func(tasks ...string) error {
		e := &starter.RefusedError{Reason: "as the run says it"}
		for _, task := range tasks {
			e.Tasks = append(e.Tasks, spec.TaskProblem{Task: task, Message: task + " is no task"})
		}
		return e
	}
	var asked [][]string
	answers := func(errs ...error) func([]string) (spec.RequestAnswer, error) {
		asked = nil
		return func(tasks []string) (spec.RequestAnswer, error) {
			asked = append(asked, tasks)
			err := errs[len(asked)-1]
			if err != nil {
				return spec.RequestAnswer{}, err
			}
			return spec.RequestAnswer{Tasks: tasks, Problems: []spec.TaskProblem{{Task: "c", Message: "c is on a host that is away"}}}, nil
		}
	}

	answer, err := forTasks([]string{"a", "b", "c"}, answers(wrong("a"), nil))
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"a", "b", "c"}, {"b", "c"}}, asked)
	assert.Equal(t, []string{"b", "c"}, answer.Tasks)
	assert.Equal(t, "a is no task\nc is on a host that is away", Messages(answer.Problems))

	_, err = forTasks([]string{"a", "b"}, answers(wrong("a", "b")))
	require.EqualError(t, err, "as the run says it")
	assert.Len(t, asked, 1, "there is nobody left")

	_, err = forTasks(nil, answers(errors.New("the run has ended")))
	require.EqualError(t, err, "the run has ended")

	_, err = forTasks([]string{"a", "b"}, answers(wrong("a"), wrong("b")))
	require.EqualError(t, err, "a is no task\nas the run says it")
}
