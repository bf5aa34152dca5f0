package logs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A process that was lost with its host has no directory in the result. Its output is missed
// all the same, and so is the output of other tasks there, unless the host has listed its
// output.
func TestOutputOfALostHostIsMissed(t *testing.T) {
	lost := &spec.Exit{ExitCode: -1, Cause: spec.CauseHostLost}
	here := t.TempDir()
	s := &starter.Status{RunID: "iris", State: spec.RunEnded, Result: &spec.RunResult{Tasks: []spec.TaskResult{
		{Name: "worker-0", Rank: 0, Host: "a", Exit: &spec.Exit{LogDir: here}},
		{Name: "worker-1", Rank: 1, Host: "b", Exit: lost},
		{Name: "worker-2", Rank: 2, Host: "b"},
		{Name: "worker-3", Rank: 3, Host: "c"}, // never launched
	}}}
	for _, r := range s.Result.Tasks {
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: r.Name, Type: "worker", Index: r.Rank, Rank: r.Rank, Host: r.Host, State: spec.TaskEnded, Exit: r.Exit}})
	}
	missed := func(l *Reader) (names []string) {
		for _, f := range l.logFiles(s) {
			if f.runDir == "" {
				assert.Equal(t, "b", f.host)
				names = append(names, f.name)
			}
		}
		return names
	}
	reader := func() *Reader { return NewReader(&cli.App{}, nil, Selection{}) }
	assert.Equal(t, []string{"worker-1", "worker-2"}, missed(reader()))

	away := reader()
	away.Hosts["b:1"] = &Host{name: "b", Err: errors.New("connection refused")}
	assert.Equal(t, []string{"worker-1", "worker-2"}, missed(away))

	back := reader()
	back.Hosts["b:1"] = &Host{name: "b"}
	assert.Empty(t, missed(back))
}

// If the earlier hosts of a group are unknown, earlier processes may have run on other hosts.
func TestEarlierGenerationsMayBeMissed(t *testing.T) {
	s := &starter.Status{Generation: 1, Tasks: []starter.TaskStatus{
		{TaskStatus: spec.TaskStatus{Name: "worker-0", Rank: 0}}, {TaskStatus: spec.TaskStatus{Name: "worker-1", Rank: 1}},
	}}
	misses := func(unknown bool, there map[int][]int) bool {
		l := NewReader(&cli.App{}, &starter.Run{ID: "iris"}, Selection{})
		l.unknown, l.there = unknown, there
		return len(l.earlier(s)) > 0
	}
	all, some := map[int][]int{0: {0, 1}, 1: {0, 1}}, map[int][]int{0: {0, 1}, 1: {1}}
	assert.False(t, misses(true, all))
	assert.True(t, misses(true, some))
	assert.False(t, misses(false, some), "all hosts were asked")
}
