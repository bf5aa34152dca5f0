package activities

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A process that survives SIGKILL holds its slot and GPUs after its run has ended, until it is
// gone.
func TestAStuckProcessHoldsWhatItHas(t *testing.T) {
	sleeper := exec.Command("sleep", "1000")
	require.NoError(t, sleeper.Start())
	pid := sleeper.Process.Pid
	stuck, ended := living("worker-0", 0, 0), living("worker-1", 0, 0)
	left := []supervisor.Survivor{{PID: pid, Ticks: must.Get(proc.ReadStat(pid))(t).Ticks}}
	stuck.Exit, ended.Exit = &supervisor.Exit{Unkillable: true, Left: left}, &supervisor.Exit{}

	s := &stopped{ended: []supervisor.Process{stuck, ended}}
	server := &describes{run: open()}
	server.run.WorkflowExecutionInfo.Status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	told := &freed{}
	h := must.Get(NewHost(Config{Name: "host-a", Slots: 2, StateDir: t.TempDir(), Supervisor: s, Server: server, Fleet: told, Log: zap.NewNop()}))(t)
	given := &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}, Devices: spec.Resources{"auto"}}
	p := &plan{Run: servedRun, Tasks: []string{"worker-0", "worker-1"}, Devices: []string{"4", "7"}, Spec: given.WithDefaults()}
	_, err := h.plans.update(servedRun, func(*plan) (*plan, error) { return p, nil })
	require.NoError(t, err)

	// The run has ended, and its plan stays.
	for range 2 {
		now := must.Get(h.plans.get(servedRun))(t)
		require.NoError(t, h.watch.reconcile(t.Context(), now))
	}
	run := fleet.Run{WorkflowID: servedRun.WorkflowID, RunID: servedRun.RunID}
	holds := h.Holds()
	require.Len(t, holds, 1)
	assert.Equal(t, run, holds[0].Run)
	assert.Equal(t, 1, holds[0].Tasks)
	assert.Equal(t, []string{"4"}, holds[0].Devices)
	assert.Contains(t, holds[0].Stuck, "worker-0 (pid ")
	assert.Len(t, s.released, 1)
	assert.NotZero(t, told.rejoined)

	// Other runs do not get them.
	other := runkey.Run{Namespace: "ns", WorkflowID: "other", RunID: "r"}
	tasks := given.WithDefaults().TaskList()
	require.ErrorContains(t, h.reservations.claimSlots(other, 0, tasks), "1 of 2 slots free")
	require.NoError(t, h.reservations.claimSlots(other, 0, tasks[:1]))
	require.ErrorContains(t, h.reservations.checkStuck(other, hostapi.ReserveInput{Devices: []string{"4"}}, nil), "SIGKILL does not end process")
	require.NoError(t, h.reservations.checkStuck(other, hostapi.ReserveInput{Devices: []string{"7"}}, tasks))
	require.Error(t, h.reservations.checkStuck(servedRun, hostapi.ReserveInput{}, tasks), "the task must not run twice")

	require.NoError(t, sleeper.Process.Kill())
	_ = sleeper.Wait()
	assert.Empty(t, h.Holds())
	told.rejoined = 0
	require.NoError(t, h.watch.reconcile(t.Context(), must.Get(h.plans.get(servedRun))(t)))
	assert.NotZero(t, told.rejoined)
	_, err = h.plans.get(servedRun)
	assert.ErrorIs(t, err, errNoPlan)
}
