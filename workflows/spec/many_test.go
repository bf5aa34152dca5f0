package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The answer of the largest run fits into the server's limit; otherwise it would terminate the
// run.
func TestAnswersAreBounded(t *testing.T) {
	long := RequestAnswer{Files: map[string]string{}}
	for i := range MaxTasks {
		task := TaskName("worker", i)
		long.Tasks = append(long.Tasks, task)
		long.Files[task] = strings.Repeat("d", 300)
		long.Problems = append(long.Problems, TaskProblem{Task: task, Message: strings.Repeat("p", 300)})
	}
	text, err := json.Marshal(long.Bounded())
	require.NoError(t, err)
	assert.Less(t, len(text), 2<<20-256<<10, "256 KiB are for stacks")
	assert.Regexp(t, `^the problems of \d+ tasks and the files of \d+ tasks are omitted from the answer; ask for fewer tasks$`, long.Bounded().Note)
	assert.Len(t, long.Files, MaxTasks, "the answer itself is as it was")

	few := RequestAnswer{Tasks: []string{"a"}, Files: map[string]string{"a": "/x"}, Problems: []TaskProblem{{Task: "b", Message: "it is away"}}}
	assert.Equal(t, few, few.Bounded())
}

// A host gets only what concerns its tasks. Participants come only with a refusal.
func TestStatusOfSomeTasks(t *testing.T) {
	whole := func() BarrierStatus {
		return BarrierStatus{
			State: BarrierWaiting, Participants: []string{"a", "b", "c"}, Waiting: []BarrierWaiter{{Task: "a"}, {Task: "b"}},
			Missing: []BarrierMissing{{Task: "c"}}, Refused: []BarrierRefusal{{Task: "d", Why: BarrierOthers}},
		}
	}
	require.Equal(t, whole(), whole().Of(nil))
	require.Equal(t, BarrierStatus{
		State: BarrierWaiting, Waiting: []BarrierWaiter{{Task: "b"}}, Missing: []BarrierMissing{}, Refused: []BarrierRefusal{},
	}, whole().Of([]string{"b", "c"}))
	require.Equal(t, BarrierStatus{
		State: BarrierWaiting, Participants: whole().Participants, Waiting: []BarrierWaiter{}, Missing: []BarrierMissing{}, Refused: whole().Refused,
	}, whole().Of([]string{"d"}))
}
