package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Two host workers with the same name would share the tasks that are pinned to it. The second
// is refused for as long as the first is alive.
func TestTheSecondHostWorkerOfANameIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code, _, stderr := f.CLI(t, "worker", "--state-dir", t.TempDir(), "--host-name", f.worker.Host)
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, ") already serves queue clusterrun as host host-a")
	assert.Contains(t, stderr, "--host-name")

	f.worker.Kill(syscall.SIGKILL)
	f.worker.ExitCode()
	harness.Eventually(t, "its side is gone", func() bool { return len(harness.Alive(f.worker.State)) == 0 })
	f.worker = f.StartWorker(t)
	r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, "true")}}))
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
}
