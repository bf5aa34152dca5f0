package logs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestLogsNameTheAttemptsThatWereRemoved(t *testing.T) {
	there := map[int][]int{0: {0}, 1: {0}, 2: {0, 1, 2}}
	for n := range 20 {
		there[0] = append(there[0], 31+n)
		there[1] = append(there[1], 1+n)
	}
	task := func(typ string, index, rank int) starter.TaskStatus {
		return starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: spec.Task{Type: typ, Index: index}.Name(), Type: typ, Index: index, Rank: rank}}
	}
	s := &starter.Status{Tasks: []starter.TaskStatus{task("ps", 0, 0), task("worker", 0, 1), task("worker", 1, 2)}}
	said := func(selected Selection) string {
		var stderr bytes.Buffer
		l := &Reader{App: &cli.App{Err: &stderr}, Selected: selected, there: there}
		l.sayPruned(s)
		return stderr.String()
	}
	assert.Equal(t, "clusterrun: ps-0: attempts 1 to 30 have been removed; of a task, the first attempt and the latest 20 are kept\n", said(Selection{}))
	assert.Empty(t, said(Selection{Names: []string{"worker"}}))
	assert.Empty(t, said(Selection{Selection: tasklog.Selection{Last: true}}))
}
