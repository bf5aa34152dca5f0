package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// hostsOf returns a fixture with two one-slot hosts, a and b, and their programs on disk.
func hostsOf(t *testing.T, s *harness.Server, args ...string) (programs map[string]*harness.Installed, hosts map[string]*harness.Worker) {
	t.Helper()
	programs, hosts = map[string]*harness.Installed{}, map[string]*harness.Worker{}
	for _, name := range []string{"a", "b"} {
		programs[name] = harness.Install(t, harness.Clusterrun(t))
		hosts[name] = programs[name].StartWorker(s, append(args, "--host-name", name, "--slots", "2")...)
	}
	return programs, hosts
}

// A run on two hosts meets at its barriers with any pair of versions, with one task waiting
// during each upgrade. New runs are placed on both hosts.
func TestHostsOfTwoVersions(t *testing.T) {
	takesLong(t)
	t.Parallel()
	next, now := harness.NextClusterrun(t), harness.Clusterrun(t)
	s := harness.StartServer(t, "--headless")
	f := prepare(t, s, nil)
	programs, hosts := hostsOf(t, s)
	harness.Eventually(t, "these are the hosts", func() bool { return len(f.hosts()) == 2 })
	start := func(name, script string) func() spec.RunResult {
		run := f.start(&spec.RunSpec{
			Env: spec.EnvOf(map[string]string{"CR": now}), Hosts: spec.Hosts{Count: "2"}, AutoRestart: true,
			Tasks: []spec.TaskGroup{group("worker", 2, "NAME="+name+"\n"+script)},
		})
		return func() spec.RunResult { return f.result(run) }
	}
	steps := []struct{ host, program, version string }{
		{"a", next, harness.NextVersion}, {"b", next, harness.NextVersion}, {"a", now, spec.Version}, {"b", now, spec.Version},
	}
	// Rank 1 waits at each barrier until rank 0 is allowed to arrive.
	long := start("long", fmt.Sprintf(`echo $$ >> $DIR/pids-$RANK
		for i in $(seq 0 %d); do
			if [ $RANK = 0 ]; then until [ -e $DIR/go-$i ]; do nap; done; else echo waits > $DIR/waits-$i; fi
			"$CR" task barrier round-$i || exit 1
			echo met > $DIR/met-$i-$RANK
		done`, len(steps)-1))
	for i, step := range steps {
		f.file(fmt.Sprintf("waits-%d", i))
		programs[step.host].Replace(step.program)
		code, stderr := hosts[step.host].Upgrade()
		require.Zero(t, code, stderr)
		assert.Contains(t, stderr, "is now clusterrun "+step.version)
		assert.Equal(t, step.version != spec.Version, strings.Contains(stderr, "its supervisor remains clusterrun "+spec.Version), stderr)
		harness.Eventually(t, "the fleet knows the versions", func() bool {
			h := f.hosts()[step.host]
			return h.Version == step.version && (step.version == spec.Version || h.Supervisor == spec.Version)
		})

		short := start(fmt.Sprint("short", i), `"$CR" task barrier here`)()
		require.Equal(t, spec.VerdictSucceeded, short.Verdict, short.Message)
		assert.NotEqual(t, task(short, "worker-0").Host, task(short, "worker-1").Host)
		touch(t, f, fmt.Sprintf("go-%d", i))
		f.file(fmt.Sprintf("met-%d-0", i))
		f.file(fmt.Sprintf("met-%d-1", i))
	}
	r := long()
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for _, task := range r.Tasks {
		assert.Zero(t, task.Restarts, task.Name)
		assert.Equal(t, fmt.Sprintln(task.Exit.PID), f.file(fmt.Sprintf("pids-%d", task.Rank)), "it was one process all the time")
	}
}

// A task waits at a barrier for one that must not arrive yet.
const meets = `
import os, time, clusterrun
while os.environ["RANK"] == "0" and not os.path.exists("go"):
    time.sleep(0.05)
clusterrun.barrier("across", timeout=600)
`

// serves is a task with closures that finish when a file allows it, and that record each call.
const serves = `
import os, time, clusterrun
@clusterrun.function
def square(x):
    with open("calls", "a") as f:
        f.write(f"{x}\n")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return x * x
clusterrun.serve()
`

// During two in-place upgrades, a host worker's tasks keep their processes. They meet at the
// barrier where they were waiting, and finish the closures that they were executing. The side
// returns its leases to the server, so nothing waits for a timeout.
func TestUpgradesUnderOpenBarriersAndClosures(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	l.ok("worker", "--detach", "--slots", "20")
	defer l.endBackgroundWorker()
	_, dir, _ := l.run("task", "python", "--dir")
	const tasks, closures = 6, 8
	for id, program := range map[string]string{"meets": meets, "serves": serves} {
		code, _, stderr := l.run("submit", "--id", id, "-n", strconv.Itoa(tasks), "--auto-restart",
			"--env", "PYTHONPATH="+strings.TrimSpace(dir), "--", "python3", "-c", program)
		require.Zero(t, code, stderr)
	}
	server := l.dial()
	c := must.Get(clustercoordinator.New(bounded(t), starter.Get(server, "serves", "")))(t)
	t.Cleanup(c.Close)
	var values []*clustercoordinator.RemoteValue
	for i := range closures {
		values = append(values, schedule(t, c, "square", i))
	}
	calls := func() []string {
		text, _ := os.ReadFile(filepath.Join(l.home, "calls"))
		return strings.Fields(string(text))
	}
	harness.Eventually(t, "every task calls a closure", func() bool { return len(calls()) == tasks })
	harness.Eventually(t, "all others wait at the barrier", func() bool {
		_, out, _ := l.run("status", "--barriers", "meets")
		return strings.Contains(out, strconv.Itoa(tasks-1)+" waiting, 1 missing")
	})
	pids := func() (all []int) {
		for _, id := range []string{"meets", "serves"} {
			out := l.ok("status", "--json", id)
			s := must.JSON[starter.Status](t, out)
			for _, task := range s.Tasks {
				assert.Zero(t, task.Restarts)
				all = append(all, task.PID)
			}
		}
		return all
	}
	var before []int
	harness.Eventually(t, "all processes are known", func() bool {
		before = pids()
		return !slices.Contains(before, 0)
	})
	same := func() bool { return slices.Equal(before, pids()) }

	for range 2 {
		_, stderr := l.succeeds("worker", "upgrade")
		assert.Contains(t, stderr, strconv.Itoa(2*tasks)+" processes continue")
	}
	harness.Eventually(t, "the same processes are known again", same)

	l.goOn()
	l.ok("wait", "meets")
	assert.Empty(t, timeouts(t, server, "meets"))
	for i, v := range values {
		assert.Equal(t, i*i, fetched[int](t, v))
	}
	called := calls()
	slices.Sort(called)
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, called, "each once")
	assert.Equal(t, before[tasks:], pids()[tasks:])
	l.ok("stop", "serves")
	_, _, _ = l.run("wait", "serves")
}
