package supervisor

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// burn uses processor time in its shell, and prints how much the shell and its children have used.
const burn = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; times"

// sample samples all tasks and returns the sample of one.
func (h *host) sample(task string, gpus ...GPUProcess) (Sample, bool) {
	h.t.Helper()
	reply := must.Get(h.client.Sample(h.ctx(), SampleRequest{GPUs: gpus}))(h.t)
	for _, v := range reply.Samples {
		if v.Process.Key.Task == task {
			return v, true
		}
	}
	return Sample{}, false
}

// timesIn sums the output of a shell's times: the shell's and its children's.
func (h *host) timesIn(name string) (all time.Duration) {
	h.t.Helper()
	for text := range strings.FieldsSeq(must.Read(h.t, h.file(name))) {
		d := must.Get(time.ParseDuration(text))(h.t)
		all += d
	}
	require.Positive(h.t, all)
	return all
}

// A task's account includes programs that exited before any sample, whichever process reaped them.
func TestUsageOfShortLives(t *testing.T) {
	const rounding = 50 * time.Millisecond
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			for task, script := range map[string]string{
				"child":  "sh -c '" + burn + "' > $D/child",
				"orphan": "sh -c '(" + burn + " > $D/orphan; : > $D/orphan-ended) &'; while [ ! -e $D/orphan-ended ]; do sleep 0.01; done",
			} {
				h.sh(task, 0, script)
				e := h.wait(task, 0)
				require.GreaterOrEqual(t, e.User+e.System+rounding, h.timesIn(task), task)
				require.Positive(t, e.MaxRSS)
			}
		})
	}
	t.Run("a daemon", func(t *testing.T) {
		h := newHost(t, nil)
		h.sh("daemon", 0, "(setsid sh -c '"+burn+" > $D/daemon; : > $D/daemon-ended' &); while [ ! -e $D/daemon-ended ]; do sleep 0.01; done")
		e := h.wait("daemon", 0)
		if cgroup.Own() == "" {
			t.Skip("without a cgroup nobody is charged")
		}
		require.GreaterOrEqual(t, e.User+e.System+rounding, h.timesIn("daemon"))
	})
}

// A sample covers the whole tree and the daemons that left it. The exit keeps the highest values.
func TestSample(t *testing.T) {
	const held = 32 << 20
	hold := fmt.Sprintf("(head -c %d /dev/zero; echo >> $D/held; exec sleep 1000) | tail -c %d > /dev/null", held, held)
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			_, living := h.sample("tree")
			require.False(t, living, "nothing runs")
			p := h.sh("tree", 0, hold+" & setsid sh -c '"+hold+"' & ("+burn+" > $D/burnt) ; echo $$ > $D/pid; wait")
			h.sh("other", 0, "exec sleep 1000")
			h.pidIn("pid")
			h.until("both hold it", func() bool {
				raw, _ := os.ReadFile(h.file("held"))
				return len(raw) == 2
			})
			var v Sample
			h.until("it is seen", func() bool { // tail may not have read everything yet
				v, living = h.sample("tree", GPUProcess{PID: p.PID, Memory: 5 << 30, Busy: 0.5}, GPUProcess{PID: os.Getpid(), Memory: 1})
				return living && v.RSS > 2*held
			})
			require.Equal(t, ref("tree", 0), v.Process)
			require.GreaterOrEqual(t, v.Processes, 6)
			require.GreaterOrEqual(t, v.Usage.MaxRSS, v.RSS)
			require.Positive(t, v.Usage.User+v.Usage.System)
			require.EqualValues(t, 5<<30, v.GPUMemory)
			require.InDelta(t, 0.5, v.GPUs, 1e-9)
			other, _ := h.sample("other")
			require.Less(t, other.RSS, int64(held), "only what is its own")
			require.Zero(t, other.GPUMemory)
			v, _ = h.sample("tree")
			require.Zero(t, v.GPUMemory, "of now")

			h.stop(sigKILL, 0)
			e := h.wait("tree", 0)
			require.Greater(t, e.MaxRSS, int64(2*held))
			require.EqualValues(t, 5<<30, e.MaxGPUMemory)
			require.Positive(t, e.GPUTime)
			require.GreaterOrEqual(t, e.User+e.System, v.Usage.User+v.Usage.System)
			h.wait("other", 0)
			_, living = h.sample("tree")
			require.False(t, living, "it has ended")
		})
	}
}

func TestSampleAsAnotherUser(t *testing.T) {
	h, u := another(t)
	r := h.request("is", 0, "echo $$ > $D/pid; exec sleep 1000")
	r.Command.User, r.Command.LogDir = u, ""
	r.Command.Stdout, r.Command.Stderr = "", ""
	h.launch(r)
	h.pidIn("pid")
	// During an exec a program's memory is zero.
	h.until("it is seen", func() bool {
		v, living := h.sample("is")
		return living && v.RSS > 0
	})
	h.stop(sigKILL, 0)
	h.wait("is", 0)
}

// Neither events between two looks nor clock readings make a sample wrong.
func TestSampleArithmetic(t *testing.T) {
	at := time.Now()
	p := &process{task: &task{run: &run{}}}
	p.sampled.at = at
	look := func(after time.Duration, use treeUsage) Sample {
		at = at.Add(after)
		return p.sample(at, &use)
	}
	v := look(10*time.Second, treeUsage{user: 15 * time.Second, system: 5 * time.Second, rss: 100, processes: 3})
	require.InDelta(t, 2, v.CPUs, 1e-9)
	v = look(10*time.Second, treeUsage{user: 4 * time.Second, rss: 10, processes: 1})
	require.Zero(t, v.CPUs, "a child that is being reaped is in neither account")
	require.EqualValues(t, 10, v.RSS)
	require.EqualValues(t, 100, v.Usage.MaxRSS)
	p.charge(&syscall.Rusage{Utime: syscall.NsecToTimeval(int64(26 * time.Second)), Maxrss: 1})
	v = look(10*time.Second, treeUsage{user: 4 * time.Second, rss: 10})
	require.InDelta(t, 1, v.CPUs, 1e-9)
	v = look(0, treeUsage{user: 5 * time.Second, gpus: 1})
	require.Zero(t, v.CPUs, "no time has passed")
	require.Zero(t, v.Usage.GPUTime)
	v = look(10*time.Second, treeUsage{user: time.Minute, system: time.Minute, whole: true, gpus: 0.25})
	require.Equal(t, 2*time.Minute, v.Usage.User+v.Usage.System, "a cgroup has them all")
	require.Equal(t, 2500*time.Millisecond, v.Usage.GPUTime)

	used := p.used(&syscall.Rusage{Utime: syscall.NsecToTimeval(int64(time.Second)), Maxrss: 2}, &treeUsage{})
	require.Equal(t, Usage{User: 27 * time.Second, MaxRSS: 2048, GPUTime: 2500 * time.Millisecond}, used)
	used = p.used(&syscall.Rusage{}, &treeUsage{user: time.Hour, whole: true})
	require.Equal(t, time.Hour, used.User)
}

// BenchmarkSample prints the cost of sampling 256 tasks for the supervisor every ten seconds,
// as a share of one processor.
func BenchmarkSample(b *testing.B) {
	const tasks = 256
	b.Run("256 tasks", func(b *testing.B) {
		var share float64
		ran := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "sample", F: func(t *testing.T) {
			h := newHost(t, nil)
			h.startMany(tasks, "exec sleep 1000")
			before := cpuOf(t, h.cmd.Process.Pid)
			const looks = 50
			for range looks {
				reply := must.Get(h.client.Sample(h.ctx(), SampleRequest{}))(t)
				require.Len(t, reply.Samples, tasks)
			}
			share = (cpuOf(t, h.cmd.Process.Pid) - before).Seconds() / looks / 10
			h.stop(sigKILL, 0)
			h.waitMany(tasks)
		}}})
		if !ran {
			b.FailNow()
		}
		b.ReportMetric(100*share, "%_of_a_core")
	})
}

func cpuOf(t *testing.T, pid int) time.Duration {
	stat := must.Get(proc.ReadStat(pid))(t)
	return stat.User + stat.ChildUser + stat.System + stat.ChildSystem
}
