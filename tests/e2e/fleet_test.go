package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fleetOf returns a fixture with these hosts and n slots on each.
func fleetOf(t *testing.T, slots int, names ...string) (*fixture, map[string]*harness.Worker) {
	t.Helper()
	return fleetOn(t, newFixture(t), slots, names...)
}

func fleetOn(t *testing.T, f *fixture, slots int, names ...string) (*fixture, map[string]*harness.Worker) {
	t.Helper()
	hosts := map[string]*harness.Worker{}
	for _, name := range names {
		hosts[name] = f.StartWorker(t, "--host-name", name, "--slots", fmt.Sprint(slots))
	}
	// A host that is stopped before it has joined stays in the list, as silent.
	harness.Eventually(t, "all have joined", func() bool { return len(f.hosts()) == len(names)+1 })
	f.worker.Kill(syscall.SIGTERM)
	f.worker.ExitCode()
	harness.Eventually(t, "these are the hosts", func() bool { return len(f.hosts()) == len(names) })
	return f, hosts
}

// hosts returns the fleet's hosts, by name.
func (f *fixture) hosts() map[string]fleet.HostStatus {
	f.t.Helper()
	hosts := map[string]fleet.HostStatus{}
	code, stdout, stderr := f.CLI(f.t, "host", "list", "--json")
	if code != 0 {
		f.t.Log(stderr)
		return hosts
	}
	list := must.JSON[[]fleet.HostStatus](f.t, stdout)
	for _, h := range list {
		hosts[h.Name] = h
	}
	return hosts
}

// queue returns the IDs of the waiting runs, in order.
func (f *fixture) queue() []string {
	f.t.Helper()
	waiting, err := starter.GetFleet(f.client, "").Waiting(context.Background())
	if err != nil {
		f.t.Log(err)
	}
	var ids []string
	for _, w := range waiting {
		ids = append(ids, w.Run.WorkflowID)
	}
	return ids
}

func (f *fixture) waitsBehind(runs ...client.WorkflowRun) {
	f.t.Helper()
	var want []string
	for _, r := range runs {
		want = append(want, r.GetID())
	}
	harness.Eventually(f.t, "they wait", func() bool { return fmt.Sprint(f.queue()) == fmt.Sprint(want) })
}

// waitFor returns a program that reports its start, and exits when the file appears.
func waitFor(file string) string {
	return fmt.Sprintf(`echo up > $DIR/%s-$RANK; until [ -e $DIR/%s ]; do nap; done`, file, file)
}

// Tasks are placed on any hosts with free slots, on as few as possible. Runs that do not fit wait
// in order.
func TestTheFleetPlacesAndQueues(t *testing.T) {
	t.Parallel()
	f, _ := fleetOf(t, 4, "a", "b", "c")

	assert.Equal(t, "a: worker-0, worker-1, worker-2, worker-3\nb: worker-4, worker-5, worker-6, worker-7\n", f.OK(t, "validate", "--plan", "-n", "8", "--", "true"))

	// If a run limits its wait, its error reports what it was waiting for.
	r := f.result(f.start(&spec.RunSpec{PlacementTimeout: spec.DurationOf(time.Second), Tasks: []spec.TaskGroup{group("worker", 13, "true")}}))
	assert.Equal(t, spec.ErrPlacement, r.ErrorType)
	assert.Contains(t, r.Message, "could not be placed: waited for 13 slots: 4 free on a")

	eight := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 8, `echo "\"$CLUSTERRUN_HOST $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK\"" > "$CLUSTERRUN_RESULT_FILE"; `+waitFor("eight"))}})
	for i := range 8 {
		f.file(fmt.Sprintf("eight-%d", i))
	}
	assert.Equal(t, 4, f.hosts()["a"].Used)
	second := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 8, waitFor("second"))}})
	f.waitsBehind(second)
	third := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 5, "true")}})
	f.waitsBehind(second, third)

	stdout := f.OK(t, "status", "--why", third.GetID())
	assert.Contains(t, stdout, "waiting for 5 slots: 4 free on c")
	assert.Contains(t, stdout, "(position 2 in queue clusterrun)")
	_, stdout, _ = f.CLI(t, "list", "--pending")
	assert.Regexp(t, `(?m)^1 +`+second.GetID()+` +3 +8 `, stdout)
	assert.Contains(t, f.Fails(t, 1, "validate", "--plan", "-n", "20", "--", "true"), "3 hosts together have 12 slots; 20 are needed")

	// The third must not overtake the second.
	touch(t, f, "eight")
	r = f.result(eight)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, `"a 3 4 0"`, string(task(r, "worker-3").Value))
	assert.Equal(t, `"b 0 4 1"`, string(task(r, "worker-4").Value))
	f.file("second-7")
	f.waitsBehind(third)
	touch(t, f, "second")
	assert.Equal(t, spec.VerdictSucceeded, f.result(third).Verdict)
}

// A group leaves a draining host with its next generation, without using a restart. A run without
// a group stays.
func TestDrain(t *testing.T) {
	t.Parallel()
	f, _ := fleetOf(t, 2, "a", "b")
	moves := f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(0), Tasks: []spec.TaskGroup{
		group("worker", 1, `[ $CLUSTERRUN_GENERATION = 1 ] && echo "\"$CLUSTERRUN_HOST\"" > "$CLUSTERRUN_RESULT_FILE" && exit 0; echo up > $DIR/moves; exec sleep 10000`)}})
	f.file("moves")
	stays := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, waitFor("stays"))}})
	f.file("stays-0")

	f.OK(t, "host", "drain", "a", "--reason", "memory errors")
	r := f.result(moves)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, `"b"`, string(task(r, "worker-0").Value))
	assert.Equal(t, spec.TaskRunning, f.state(stays, "worker-0"))
	_, stdout, _ := f.CLI(t, "host", "list")
	assert.Regexp(t, `(?m)^a +draining .* `+stays.GetID()+` \(1\)$`, stdout)
	assert.Contains(t, stdout, "a is draining: memory errors")
	touch(t, f, "stays")
	assert.Equal(t, spec.VerdictSucceeded, f.result(stays).Verdict)

	assert.JSONEq(t, `{"host": "a", "cordoned": false, "draining": false}`, f.OK(t, "--json", "host", "uncordon", "a"))
	assert.Equal(t, fleet.HostReady, f.hosts()["a"].State)
	stdout = f.OK(t, "--json", "host", "cordon", "a")
	assert.JSONEq(t, `{"host": "a", "cordoned": true, "draining": false}`, stdout)
	assert.Equal(t, fleet.HostCordoned, f.hosts()["a"].State)
	code, _, stderr := f.CLI(t, "host", "cordon", "nobody")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "nobody")

	// A host with a failing check gets no tasks until the check succeeds, and users cannot
	// override that.
	touch(t, f, "sick")
	f.StartWorker(t, "--host-name", "c", "--slots", "2", "--check-every", "1s", "--check", "own=test ! -e "+f.dir+"/sick || { echo no disk; exit 3; }")
	harness.Eventually(t, "c has joined", func() bool { return f.hosts()["c"].CordonedBy == fleet.CordonedByCheck })
	code, _, stderr = f.CLI(t, "host", "uncordon", "c")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "host c is cordoned by its check own: exit code 3: no disk. It gets tasks again once the check succeeds")
	waits := f.start(&spec.RunSpec{Hosts: spec.Hosts{Select: []string{"c"}}, Tasks: []spec.TaskGroup{group("worker", 1, "true")}})
	f.waitsBehind(waits)
	require.NoError(t, os.Remove(filepath.Join(f.dir, "sick")))
	assert.Equal(t, spec.VerdictSucceeded, f.result(waits).Verdict)
	harness.Eventually(t, "its result is known", func() bool {
		_, stdout, _ := f.CLI(t, "host", "show", "c")
		return regexp.MustCompile(`(?m)^own +ok `).MatchString(stdout)
	})
}

// training trains until the file "enough" exists, and saves its step on a notice.
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

// A run with notice saves its work, leaves its slots to the run that waits for them, is pending
// again with its age, and continues without a lost step or a counted failure.
func TestARunMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	f, _ := fleetOf(t, 2, "a")
	python := must.Get(exec.LookPath("python3"))(t)
	low := spec.TaskGroup{
		Type: "worker", Count: new(2), Command: []string{python, "-c", training},
		Env: spec.EnvOf(map[string]string{"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": filepath.Join(harness.Root(), "activities/tasks/python")}),
	}
	first := f.start(&spec.RunSpec{Priority: new(5), Tasks: []spec.TaskGroup{low}})
	f.file("steps-0")
	f.file("steps-1")
	vip := f.start(&spec.RunSpec{Priority: new(1), Tasks: []spec.TaskGroup{group("worker", 2, waitFor("vip"))}})
	f.waitsBehind(vip)
	f.OK(t, "stop", "--notice", "1m", "--requeue", "--reason", vip.GetID()+" comes first", first.GetID())
	f.file("vip-1")
	f.waitsBehind(first)
	_, stdout, _ := f.CLI(t, "status", first.GetID())
	assert.Contains(t, stdout, "preempted 1 time, pending again since ")
	assert.Contains(t, stdout, "preempted: "+vip.GetID()+" comes first")
	touch(t, f, "vip")
	require.Equal(t, spec.VerdictSucceeded, f.result(vip).Verdict)
	before := len(f.file("steps-0"))
	harness.Eventually(t, "it continues", func() bool { return len(f.file("steps-0")) > before })
	touch(t, f, "enough")
	r := f.result(first)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Equal(t, 1, r.Preemptions)
	for rank := range 2 {
		steps := must.Get(os.ReadFile(filepath.Join(f.dir, fmt.Sprintf("steps-%d", rank))))(t)
		for i, step := range strings.Fields(string(steps)) {
			require.Equal(t, fmt.Sprint(i+1), step, "rank %d", rank)
		}
	}
}
