package web

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func statusOf(names ...string) *starter.Status {
	s := &starter.Status{RunID: "iris"}
	for rank, name := range names {
		kind, index, err := spec.ParseTaskName(name)
		if err != nil {
			panic(err)
		}
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: kind, Index: index, Rank: rank}})
	}
	return s
}

func TestChosenTasks(t *testing.T) {
	s := statusOf("chief-0", "worker-0", "worker-1", "worker-2")
	for ranks, want := range map[string][]string{
		"":                 nil,
		"0":                {"chief-0"},
		"1-2":              {"worker-0", "worker-1"},
		" 3 , 0 ":          {"chief-0", "worker-2"},
		"2-99":             {"worker-1", "worker-2"},
		"worker":           {"worker-0", "worker-1", "worker-2"},
		"chief-0,worker-1": {"chief-0", "worker-1"},
	} {
		names, err := outputQuery{page.OutputFilter{Ranks: ranks}}.names(s)
		require.NoError(t, err, ranks)
		assert.Equal(t, want, names, ranks)
	}
	for _, ranks := range []string{"4", "7-9", "ps", "3-1", "<b>", "1-"} {
		_, err := outputQuery{page.OutputFilter{Ranks: ranks}}.names(s)
		assert.Error(t, err, ranks)
	}
}

func TestFileName(t *testing.T) {
	assert.Equal(t, "a_b_c-worker-0", fileName("a/b\"c-worker-0"))
	assert.Equal(t, "___", fileName("\r\n\x00"))
}
