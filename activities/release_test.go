package activities

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

func textValue(sign string, bytes int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat(sign, bytes-2) + `"`)
}

// One value of the largest size is always returned, with any content.
func TestTheLargestValueFits(t *testing.T) {
	o := hostapi.ReleaseOutput{Values: map[string]json.RawMessage{"worker-0": textValue("x", taskapi.MaxResult)}}
	fit(&o)
	assert.Len(t, o.Values, 1)
	assert.Empty(t, o.LeftOut)
}

// If not all values fit, the largest are left out, measured as they are sent, and no more of
// them than necessary.
func TestValuesThatDoNotFit(t *testing.T) {
	o := hostapi.ReleaseOutput{
		Exits: map[string][]spec.Exit{"worker-0": {{Message: "first"}, {Message: strings.Repeat("m", 1000)}}},
		Values: map[string]json.RawMessage{
			"angles": textValue("<", 100<<10), // six times as long when sent
			"small":  json.RawMessage("1"),
		},
	}
	for i := range 4 {
		o.Values[fmt.Sprint("large-", i)] = textValue("x", 200<<10)
	}
	fit(&o)
	assert.Equal(t, []string{"angles"}, o.LeftOut)
	assert.Len(t, o.Values, 5)
	assert.LessOrEqual(t, carried(o), maxReleasePayload)
	assert.Len(t, o.Exits["worker-0"], 2, "the exits take little")
}

// A host with any number of tasks can release the run.
func TestTheMostTasksOfAHostFit(t *testing.T) {
	o := hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}, Values: map[string]json.RawMessage{}}
	for i := range spec.MaxTasks {
		task := spec.TaskName("worker", i)
		e := spec.Exit{PID: i, Cause: spec.CauseCompleted, Started: time.Now(), Ended: time.Now(), BootNanos: 1 << 60, LogDir: strings.Repeat("d", 200)}
		if i == 7 {
			e.Cause, e.ExitCode, e.Message = spec.CauseOrigin, 3, "no such file"
		}
		o.Exits[task] = []spec.Exit{e}
		o.Values[task] = json.RawMessage("1")
	}
	fit(&o)
	assert.LessOrEqual(t, carried(o), maxReleasePayload)
	assert.Len(t, o.Exits, spec.MaxTasks, "all are tasks of this host")
	assert.Equal(t, 3, o.Exits["worker-7"][0].ExitCode)
	assert.Empty(t, o.Exits["worker-8"])
	assert.Empty(t, o.LeftOut)

	o = hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}}
	for i := range 1000 {
		o.Exits[spec.TaskName("worker", i)] = []spec.Exit{{Message: "first"}, {Message: strings.Repeat("m", 1000)}}
	}
	fit(&o)
	assert.LessOrEqual(t, carried(o), maxReleasePayload)
	require.Len(t, o.Exits["worker-0"], 1, "older exits go first")
	assert.Len(t, o.Exits["worker-0"][0].Message, 200)
}
