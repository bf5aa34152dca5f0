package taskapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Participants of a large run are given by type, by name, or both.
func TestParticipantsOfALargeRun(t *testing.T) {
	v := &View{}
	var all []string
	for i := range 1000 {
		task := fmt.Sprint("worker-", i)
		v.Members = append(v.Members, Member{Task: task, Type: "worker", Index: i, Rank: i})
		v.Tasks = append(v.Tasks, task)
		all = append(all, task)
	}
	v.Members = append(v.Members, Member{Task: "worker-1000", Type: "worker", Index: 1000, Rank: 1000}) // added later
	for name, names := range map[string][]string{"none": nil, "the type": {"worker"}, "all": all, "twice": append([]string{"worker", "worker-7"}, all...)} {
		got, problem := v.participants(names)
		require.Nil(t, problem, name)
		assert.Equal(t, all, got, name)
	}
	got, problem := v.participants([]string{"worker-1000", "worker-3"})
	require.Nil(t, problem)
	assert.Equal(t, []string{"worker-3", "worker-1000"}, got, "in rank order; what was added has to be named")
	_, problem = v.participants([]string{"worker", "ps"})
	require.NotNil(t, problem)
	assert.Equal(t, "participants[1]", problem.Field)
	assert.Contains(t, problem.Message, `no task and no type "ps"; it has worker-0, `)
	assert.Contains(t, problem.Message, "worker-19 and 981 more")
}
