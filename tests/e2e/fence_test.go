package e2e

import (
	"bufio"
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

	"github.com/clusterrun/clusterrun/tests/drill"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// lives records every 20 ms that this process is alive, using a machine-wide clock.
const lives = `exec python3 -c '
import os, time
path = "%s/lives.%%s.%%s.%%d" %% (os.environ["CLUSTERRUN_TASK"], os.environ["CLUSTERRUN_GENERATION"], os.getpid())
with open(path, "w", buffering=1) as f:
    while not os.path.exists("%s/go"):
        print(time.clock_gettime_ns(time.CLOCK_BOOTTIME), file=f)
        time.sleep(0.02)
'`

// life is the period while a process recorded that it was alive.
type life struct{ first, last int64 }

// livesOf returns a generation's processes.
func (f *fixture) livesOf(generation int) []life {
	f.t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(f.dir, fmt.Sprintf("lives.*.%d.*", generation))))(f.t)
	var all []life
	for _, name := range files {
		var l life
		file := must.Get(os.Open(name))(f.t)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			at, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				continue // it is being written
			}
			if l.first == 0 {
				l.first = at
			}
			l.last = at
		}
		_ = file.Close()
		if l.first != 0 {
			all = append(all, l)
		}
	}
	return all
}

// killSides kills a worker's sides as soon as they start, until stop is called.
func killSides(w *harness.Worker) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			for _, pid := range harness.Children(w.Cmd.Process.Pid) {
				if strings.Contains(harness.Cmdline(pid), " side") {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}

// When a host is cut off, no process of a generation is alive there when the next generation starts
// elsewhere, although the host's side cannot stop them. The drill tries more faults.
func TestNoTwoGenerationsLive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	link := must.Get(drill.NewLink("127.0.0.1:0", f.Address))(t)
	t.Cleanup(link.Close)
	// Only host b has slots for both of the tasks that any host may take.
	listen := []string{"--listen", "127.0.0.1", "--slots"}
	b := f.StartWorker(t, append(listen, "2", "--host-name", "host-b", "--address", link.Address())...)
	f.worker.Kill(syscall.SIGTERM)
	f.worker.ExitCode()
	f.worker = f.StartWorker(t, append(listen, "1", "--host-name", "host-p")...)
	script := []string{"/bin/bash", "-c", fmt.Sprintf(lives, f.dir, f.dir)}
	run := f.start(&spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, OnDisconnect: spec.OnDisconnectWithOutage(5*time.Second, 10*time.Minute),
		Stop: spec.Stop{Grace: spec.DurationOf(time.Second)},
		Tasks: []spec.TaskGroup{
			{Type: "worker", Addresses: []string{"host-p"}, Command: script},
			{Type: "ps", Count: ptr(2), Command: script},
		},
	})
	harness.Eventually(t, "all tasks live", func() bool { return len(f.livesOf(0)) == 3 })
	heal := must.Get(link.Cut(drill.CutRefuse))(t)
	stop := killSides(b)
	f.StartWorker(t, append(listen, "2", "--host-name", "host-c")...)
	harness.Eventually(t, "the next generation lives elsewhere", func() bool { return len(f.livesOf(1)) == 3 })
	stop()
	require.NoError(t, heal())
	touch(t, f, "go")
	r := f.result(run)
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	var last int64
	for _, l := range f.livesOf(0) {
		last = max(last, l.last)
	}
	for _, l := range f.livesOf(1) {
		assert.Greater(t, l.first, last, "%s after the start of generation 1 one of generation 0 lived", time.Duration(last-l.first))
	}
}

// If the server is down for longer than stop_after, a run on several hosts loses all its
// processes, and reports that. With the policy keep, or if the hosts reach each other and outage
// is longer, the run keeps the same processes.
func TestAServerThatIsAwayForLong(t *testing.T) {
	for _, policy := range []spec.OnDisconnect{
		spec.OnDisconnectKeep, spec.OnDisconnectWithOutage(5*time.Second, 10*time.Minute), spec.OnDisconnectStop(5 * time.Second),
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.StartWorker(t, "--host-name", "host-b", "--listen", "127.0.0.1")
			f.StartWorker(t, "--host-name", "host-c", "--listen", "127.0.0.1")
			script := harness.Bash(until)
			run := f.start(&spec.RunSpec{OnDisconnect: policy, Stop: spec.Stop{Grace: spec.DurationOf(time.Second)}, Tasks: []spec.TaskGroup{
				{Type: "worker", Addresses: []string{"host-b"}, Command: script},
				{Type: "ps", Addresses: []string{"host-c"}, Command: harness.Bash(strings.ReplaceAll(until, "started-$CLUSTERRUN_TASK_INDEX", "started-1"))},
			}})
			pids := []int{f.startedOnce(0), f.startedOnce(1)}
			f.Kill()
			if policy != spec.OnDisconnectStop(5*time.Second) {
				time.Sleep(8 * time.Second) // the outage is under test
				f.Restart()
				touch(t, f, "go")
				r := f.result(run)
				assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
				assert.Equal(t, pids, []int{task(r, "worker-0").Exit.PID, task(r, "ps-0").Exit.PID})
				return
			}
			harness.Eventually(t, "all processes are stopped", func() bool { return len(harness.Alive(f.mark)) == 0 })
			f.Restart()
			r := f.result(run)
			assert.Equal(t, spec.ErrHostLost, r.ErrorType, r.Message)
			assert.Contains(t, r.FirstFailure.Message, "could not reach the Temporal server for too long")
			assert.Equal(t, spec.CauseHostLost, r.FirstFailure.Cause)
		})
	}
}
