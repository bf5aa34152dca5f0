package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// training trains until the file "enough" is there, and saves its step when it has notice.
const training = `
import os, sys, time, clusterrun
here = os.environ["DIR"] + "/"
saved, steps = here + "saved-" + os.environ["RANK"], here + "steps-" + os.environ["RANK"]
step = int(open(saved).read()) if os.path.exists(saved) else 0
with open(steps, "a") as done:
    while not os.path.exists(here + "enough"):
        time.sleep(0.01)
        step += 1
        print(step, file=done, flush=True)
        if clusterrun.preempted() is not None:
            with open(saved, "w") as f:
                print(step, file=f)
            sys.exit(75)
`

// A run of higher priority gets the room of another, which saves its work, is pending again with
// its age, and continues without a lost step or a counted failure.
func TestARunMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	f, _ := fleetOf(t, 2, "a")
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	low := spec.TaskGroup{
		Type: "worker", Count: new(2), Command: []string{python, "-c", training},
		Env: spec.EnvOf(map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": filepath.Join(harness.Root(), "activities/tasks/python")}),
	}
	first := f.start(&spec.RunSpec{Priority: new(5), Preemption: spec.Preemption{Notice: spec.DurationOf(time.Minute)}, Tasks: []spec.TaskGroup{low}})
	f.file("steps-0")
	f.file("steps-1")
	vip := f.start(&spec.RunSpec{Priority: new(1), Tasks: []spec.TaskGroup{group("worker", 2, waitFor("vip"))}})
	f.waitsBehind(vip) // queues do not preempt by default
	code, stdout, stderr := f.CLI(t, "host", "settings", "--preempt", "lower-priority")
	require.Zero(t, code, stderr)
	assert.Equal(t, "preempt: lower-priority\nsick hosts: report\n", stdout)
	f.file("vip-1")
	f.waitsBehind(first)
	_, stdout, _ = f.CLI(t, "status", first.GetID())
	assert.Contains(t, stdout, "preempted 1 time, pending again since ")
	assert.Contains(t, stdout, "preempted: run "+vip.GetID()+" with priority 1 needs the room")
	touch(t, f, "vip")
	require.Equal(t, spec.VerdictSucceeded, f.result(vip).Verdict)
	before := len(f.file("steps-0"))
	harness.Eventually(t, "it continues", func() bool { return len(f.file("steps-0")) > before })
	touch(t, f, "enough")
	r := f.result(first)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, 1, r.Preemptions)
	for rank := range 2 {
		steps, err := os.ReadFile(filepath.Join(f.dir, fmt.Sprintf("steps-%d", rank)))
		require.NoError(t, err)
		for i, step := range strings.Fields(string(steps)) {
			require.Equal(t, fmt.Sprint(i+1), step, "rank %d", rank)
		}
	}
}
