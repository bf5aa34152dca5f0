package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// member is a program that writes its generation's variables, and exits when a file appears.
const member = `echo "$$ $CLUSTERRUN_HOST $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $TF_CONFIG" > $DIR/told-$CLUSTERRUN_GENERATION-$RANK
until [ -e $DIR/end ]; do nap; done`

// generation waits for a generation on these hosts, with perHost tasks on each, and checks the
// tasks' variables. It returns their processes by host.
func (f *fixture) generation(generation, perHost int, hosts ...string) map[string][]int {
	f.t.Helper()
	pids := map[string][]int{}
	master := ""
	for rank := range len(hosts) * perHost {
		name := fmt.Sprintf("told-%d-%d", generation, rank)
		harness.Within(f.t, 3*time.Minute, name+" is written", func() bool { return f.written(name) })
		words := strings.SplitN(strings.TrimSpace(f.file(name)), " ", 10)
		require.Len(f.t, words, 10)
		pid := must.Get(strconv.Atoi(words[0]))(f.t)
		host := hosts[rank/perHost]
		pids[host] = append(pids[host], pid)
		want := fmt.Sprint(host, " ", rank, " ", len(hosts)*perHost, " ", rank%perHost, " ", perHost, " ", rank/perHost, " ", len(hosts))
		assert.Equal(f.t, want, strings.Join(words[1:8], " "), name)
		if master == "" {
			master = words[8]
		}
		assert.Equal(f.t, master, words[8], "the master of all is that of the first")
		var tf struct {
			Cluster map[string][]string
			Task    struct{ Index int }
		}
		require.NoError(f.t, json.Unmarshal([]byte(words[9]), &tf))
		assert.Len(f.t, tf.Cluster["worker"], len(hosts)*perHost)
		assert.Equal(f.t, rank, tf.Task.Index)
	}
	assert.False(f.t, f.written(fmt.Sprintf("told-%d-%d", generation, len(hosts)*perHost)), "there are no more")
	return pids
}

func (f *fixture) written(name string) bool {
	info, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil && info.Size() > 0
}

// elastic is a run with members on a range of hosts.
func elastic(count spec.HostCount, tasks int, grow spec.Grow) *spec.RunSpec {
	return &spec.RunSpec{
		Hosts: spec.Hosts{Count: count}, Elastic: spec.Elastic{JoinWait: spec.DurationOf(time.Second), Grow: grow},
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(0), OnDisconnect: spec.OnDisconnectStop(5 * time.Second),
		Stop:  spec.Stop{Grace: spec.DurationOf(time.Second)},
		Tasks: []spec.TaskGroup{group("worker", tasks, member)},
	}
}

// An elastic run starts on the available hosts. If it loses a host, it continues on the remaining
// hosts without using its restarts, and a later generation uses an added host.
func TestElasticHosts(t *testing.T) {
	t.Parallel()
	f, hosts := fleetOf(t, 2, "a", "b", "c")
	stdout, stderr := f.Succeeds(t, "validate", "--plan", "--nnodes", "2:4", "--nproc-per-node", "2", "--", "true")
	assert.Equal(t, "a: worker-0, worker-1\nb: worker-2, worker-3\nc: worker-4, worker-5\n", stdout)
	assert.Contains(t, stderr, "it waits 30s for 4 hosts, then starts on 3; its minimum is 2")

	s := elastic("2:4", 8, spec.GrowNextGeneration)
	// Three hosts read such a large spec from a workflow, two receive it.
	large := map[string]string{}
	for i := range 5 {
		large[fmt.Sprint("LARGE_", i)] = strings.Repeat("x", 100_000)
	}
	s.Env = spec.EnvOf(large)
	run := f.start(s)
	first := f.generation(0, 2, "a", "b", "c")
	_, stdout, _ = f.CLI(t, "status", run.GetID())
	assert.Contains(t, stdout, "elastic: 3 of 2:4 hosts, world size 6; the next generation gets more if capacity permits\n")
	assert.NotContains(t, stdout, "worker-6")
	_, err := f.tryUpdate(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-6"})
	assert.ErrorContains(t, err, "worker-6 is not running at present; the hosts have capacity for 6 of the 8 tasks")

	side := hosts["b"].Side()
	hosts["b"].Kill(syscall.SIGKILL)
	for _, pid := range append(first["b"], side) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // some exit with the others
	}
	f.generation(1, 2, "a", "c")
	status := must.Get(starter.Get(f.client, run.GetID(), "").Status(t.Context()))(t)
	assert.Equal(t, &spec.ElasticStatus{Range: "2:4", Hosts: 2, Tasks: 4, Grow: spec.GrowNextGeneration}, status.Elastic)
	assert.Len(t, status.Tasks, 4)

	hosts["b"].Restart()
	harness.Eventually(t, "b is back, and has room for others", func() bool {
		b := f.hosts()["b"]
		return b.State == fleet.HostReady && len(b.Holds) == 0
	})
	f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-3"}})
	f.generation(2, 2, "a", "c", "b")
	_, stdout, _ = f.CLI(t, "status", "--why", run.GetID())
	assert.Contains(t, stdout, "elastic: 3 of 2:4 hosts, world size 6;")
	assert.Contains(t, stdout, "b: worker-4, worker-5\n")
	touch(t, f, "end")
	r := f.result(run)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, 2, r.Generation)
	assert.Len(t, r.Tasks, 6)
}
