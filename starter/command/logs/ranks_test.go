package logs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A bare number among task names is a rank.
func TestTasksByRank(t *testing.T) {
	s := &starter.Status{RunID: "iris-1"}
	for rank, name := range []string{"chief-0", "worker-0", "worker-1"} {
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: name[:len(name)-2], Rank: rank}})
	}
	require.NoError(t, cli.CheckTasks([]string{"2", "chief-0"}))
	require.Error(t, cli.CheckTasks([]string{"-1"}))
	names, err := cli.NamesOfRanks(s, []string{"2", "chief-0", "1"})
	require.NoError(t, err)
	assert.Equal(t, []string{"worker-1", "chief-0", "worker-0"}, names)
	_, err = cli.NamesOfRanks(s, []string{"7"})
	require.ErrorContains(t, err, "run iris-1 has no rank 7")
	ranks, err := RanksOf(s, []string{"0", "worker-1"})
	require.NoError(t, err)
	assert.Equal(t, map[int]bool{0: true, 2: true}, ranks)
}
