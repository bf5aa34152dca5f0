package outcome_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestSelect(t *testing.T) {
	s := &outcome.Status{}
	for rank, task := range []spec.TaskStatus{
		{Name: "chief-0", Type: "chief", Host: "gpu-1"},
		{Name: "worker-0", Type: "worker", Host: "gpu-1"},
		{Name: "worker-1", Type: "worker", Host: "gpu-2", State: spec.TaskEnded, Exit: &spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin}},
		{Name: "worker-10", Type: "worker", Host: "worker-0"},
	} {
		task.Rank = rank
		s.Tasks = append(s.Tasks, outcome.TaskStatus{TaskStatus: task})
	}
	for words, want := range map[string]string{
		"":                   "0 1 2 3",
		"worker-1":           "2",
		"worker-0":           "1", // rather than the host with that name
		"worker":             "1 2 3",
		"2":                  "2",
		"3 0":                "0 3",
		"1-2":                "1 2",
		"2-9":                "2 3",
		"worker-1*":          "2 3",
		"*-0":                "0 1",
		"gpu-1":              "0 1",
		"gpu-1 failed":       "0 1 2",
		"nobody":             "? nobody",
		"7 chief":            "0 ? 7",
		"8-9":                "? 8-9",
		"2-1":                "? 2-1",
		"x* worker-9 chie -": "? x* worker-9 chie -",
	} {
		tasks, unknown := s.Select(strings.Fields(words))
		var got []string
		for _, task := range tasks {
			got = append(got, string(rune('0'+task.Rank)))
		}
		if unknown != nil {
			got = append(append(got, "?"), unknown...)
		}
		assert.Equal(t, want, strings.Join(got, " "), words)
	}
	tasks, unknown := s.Select([]string{""})
	assert.Empty(t, tasks)
	assert.Equal(t, []string{""}, unknown)
}
