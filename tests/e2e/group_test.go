package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// told is a script that writes the variables of the process's generation.
const told = `echo "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $CLUSTERRUN_GENERATION $MASTER_PORT $(basename $(dirname $CLUSTERRUN_LOG_DIR))" > $DIR/told-$RANK-$CLUSTERRUN_GENERATION; `

// SEED-82: any failure stops all, and the next generation starts, every
// rank with the same count, fresh ports and a log directory of its own.
func TestGroupRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(3),
		Tasks: []spec.TaskGroup{group("worker", 3, told+`
			if [ $RANK = 1 ] && [ $CLUSTERRUN_GENERATION -lt 2 ]; then while [ ! -s $DIR/told-0-$CLUSTERRUN_GENERATION ] || [ ! -s $DIR/told-2-$CLUSTERRUN_GENERATION ]; do nap; done; echo oh no >&2; exit 9; fi
			[ $CLUSTERRUN_GENERATION = 2 ] && { echo '"done"' > $CLUSTERRUN_RESULT_FILE; exit 0; }
			exec sleep 10000`)},
	})
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, 2, r.Generation)
	ports := map[string]bool{}
	for generation := range 3 {
		var port string
		for rank := range 3 {
			fields := strings.Fields(f.file(fmt.Sprintf("told-%d-%d", rank, generation)))
			require.Len(t, fields, 5)
			assert.Equal(t, []string{fmt.Sprint(generation), "3", fmt.Sprint(generation)}, fields[:3])
			assert.Equal(t, fmt.Sprintf("attempt_%d", generation), fields[4])
			if rank > 0 {
				assert.Equal(t, port, fields[3], "all ranks of a generation are told the same port")
			}
			port = fields[3]
		}
		assert.False(t, ports[port], "port %s was an earlier generation's", port)
		ports[port] = true
	}
	for _, task := range r.Tasks {
		require.Len(t, task.Exits, 3, task.Name)
		assert.Equal(t, 2, task.Restarts)
		assert.JSONEq(t, `"done"`, string(task.Value))
		for i, e := range task.Exits {
			assert.Equal(t, i, e.Restart)
			if i < 2 && task.Name != "worker-1" {
				assert.Equal(t, spec.CauseCollateral, e.Cause)
			}
		}
	}
	assert.Equal(t, "oh no", task(r, "worker-1").Exits[1].Message)
}

// Budget by cause: neither a host that was lost nor an operator's restart counts.
func TestGroupRestartsThatDoNotCount(t *testing.T) {
	takesLong(t)
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(0),
		Tasks: []spec.TaskGroup{group("worker", 2, told+`
			while [ ! -e $DIR/go ]; do nap; done; [ $RANK = 0 ] && exit 5; exec sleep 10000`)},
	})
	f.file("told-1-0")
	f.file("told-0-0")
	f.worker.Kill(syscall.SIGKILL)
	f.worker.ExitCode()
	f.worker.Restart()
	f.file("told-0-1")
	f.file("told-1-1")
	answer := f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-1"}})
	assert.Equal(t, []string{"worker-0", "worker-1"}, answer.Tasks, "the group")
	f.file("told-0-2")
	f.file("told-1-2")
	touch(t, f, "go")
	r := f.result(run)
	assert.Equal(t, 5, r.ExitCode, r.Message)
	assert.Equal(t, 2, r.Generation)
	exits := task(r, "worker-1").Exits
	require.Len(t, exits, 3)
	assert.Equal(t, spec.CauseHostLost, exits[0].Cause)
	assert.Equal(t, spec.CauseOperator, exits[1].Cause)
	assert.Equal(t, spec.CauseCollateral, exits[2].Cause)
}

// Nothing of one generation is left when the next one starts, and both hosts of a
// run begin it together.
func TestGroupRestartOnTwoHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.StartWorker(t, "--host-name", "localhost.localdomain")
	run := f.start(&spec.RunSpec{
		RestartScope: spec.RestartScopeGroup,
		Tasks: []spec.TaskGroup{
			group("worker", 2, told+`
				if [ $CLUSTERRUN_GENERATION = 0 ]; then trap '' TERM; echo $$ > $DIR/pid-$RANK; [ $RANK = 0 ] && { while [ ! -s $DIR/pid-1 ] || [ ! -s $DIR/pid-2 ]; do nap; done; exit 3; }; sleep 10000 & wait; fi
				kill -0 $(cat $DIR/pid-2) 2>/dev/null && echo left > $DIR/left; true`),
			{Type: "ps", Addresses: []string{"localhost.localdomain"}, Command: []string{"bash", "-c", told + `
				if [ $CLUSTERRUN_GENERATION = 0 ]; then echo $$ > $DIR/pid-2; exec sleep 10000; fi`}},
		},
		Stop: spec.Stop{Grace: spec.DurationOf(500 * time.Millisecond)},
	})
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, 1, r.Generation)
	assert.NoFileExists(t, filepath.Join(f.dir, "left"))
	assert.Equal(t, "SIGKILL", task(r, "worker-1").Exits[0].Signal)
	assert.Equal(t, "SIGTERM", task(r, "ps-0").Exits[0].Signal)
	for rank := range 3 {
		assert.Equal(t, "1", strings.Fields(f.file(fmt.Sprintf("told-%d-1", rank)))[0])
	}
}

// A run that restarts its group forever continues as new between generations. It is still
// reached by its first execution, its logs stay together, and its timeout holds.
func TestGroupContinuesAsNew(t *testing.T) {
	takesLong(t)
	t.Parallel()
	s := harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=40")
	f := &fixture{Server: s, t: t, client: s.Client(), dir: t.TempDir(), mark: "E2E_MARK=can" + fmt.Sprint(os.Getpid())}
	f.worker = s.StartWorker(t)
	run := f.start(&spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, Timeout: spec.DurationOf(5 * time.Minute),
		Tasks: []spec.TaskGroup{group("worker", 2, told+`[ $RANK = 1 ] && [ $CLUSTERRUN_GENERATION -lt 4 ] && exit 9; exec sleep 10000`)},
	})
	f.file("told-0-4")
	f.file("told-1-4")
	first := must.Get(f.client.DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID()))(t)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, first.GetWorkflowExecutionInfo().GetStatus())

	handle := starter.Get(f.client, run.GetID(), run.GetRunID())
	status := must.Get(handle.Status(context.Background()))(t)
	assert.True(t, status.Open)
	assert.Equal(t, 4, status.Generation)
	answer := must.Get(starter.Ask(context.Background(), handle, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"}))(t)
	assert.Equal(t, []string{"worker-0"}, answer.Tasks)
	require.NoError(t, handle.Cancel(context.Background()))
	r, err := handle.Wait(context.Background())
	var failed *starter.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, spec.VerdictCancelled, r.Verdict, r.Message)
	assert.Equal(t, 4, r.Generation)
	exits := task(*r, "worker-1").Exits
	require.GreaterOrEqual(t, len(exits), 3)
	logs := filepath.Dir(filepath.Dir(exits[len(exits)-1].LogDir))
	for generation := range 5 {
		assert.DirExists(t, filepath.Join(logs, fmt.Sprintf("attempt_%d", generation), "1"))
	}
	assert.Equal(t, logs, filepath.Dir(filepath.Dir(exits[0].LogDir)))
	assert.Empty(t, harness.Alive(f.mark))
}
