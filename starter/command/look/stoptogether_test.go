package look

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestStatusOfAStopTogether(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, &starter.Status{
		RunID: "iris-1", Open: true, State: spec.RunStopping, Started: time.Now(),
		Stopping: &spec.Stopping{Stop: true, Reason: "enough", Asked: time.Now(), Deadline: time.Now().Add(time.Hour)},
	}, false)
	assert.Regexp(t, `^run iris-1: stopping, .*\nstopping together: an operator asked all tasks to stop: enough \(\S+ ago; (1h0m0s|59m59s) left\)\n$`, out.String())
	out.Reset()
	printStatus(&out, &starter.Status{
		RunID: "iris-1", State: spec.RunEnded,
		Result: &spec.RunResult{Verdict: spec.VerdictSucceeded, Stopping: &spec.Stopping{Stop: true, By: "worker-0"}},
	}, false)
	assert.Contains(t, out.String(), "run iris-1: succeeded")
	assert.Contains(t, out.String(), "\nworker-0 asked all tasks to stop\n")
}
