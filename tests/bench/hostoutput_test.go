package bench

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkHostOutput measures `clusterrun logs` for 4 tasks on 4 hosts whose files it cannot
// read, with 200,000 lines of 100 bytes each: after the end of the run, and with -f while they
// are written. The benchmark reads its pipe and checks every line. The peer is the same command
// for a run whose files are on this machine. All figures are lines of all tasks by time, of the
// whole command. Goals: 400,000 lines/s, and the memory of the command and of the host workers
// grows by 16 MiB at most while the lines come.
func BenchmarkHostOutput(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	f := newFixture(b)
	var hosts, here []string
	var workers []*harness.Worker
	for i := range teeTasks {
		name := fmt.Sprintf("host-%d", i)
		// Another directory for each program, as on different machines.
		workers = append(workers, f.StartWorker(b, "--host-name", name, "--listen", "127.0.0.1", "--log-dir", "/proc/self/cwd/logs"))
		hosts, here = append(hosts, name), append(here, f.worker.Host)
	}
	var pids []int
	for _, w := range append(workers, f.worker) {
		pids = append(pids, w.Process.Cmd.Process.Pid, w.Side())
	}
	watched := func() []int { return pids }
	begin := func(addresses []string) string {
		return f.start(&spec.RunSpec{Dir: f.dir, Tasks: []spec.TaskGroup{{
			Type: "worker", Addresses: addresses, Command: []string{self, "write-lines", strconv.Itoa(teeLines)},
		}}}).GetID()
	}
	await := func(id string) {
		require.NoError(b, f.client.GetWorkflow(b.Context(), id, "").Get(b.Context(), nil))
	}
	logs := func(args ...string) []string {
		return append([]string{harness.Clusterrun(b), "logs", "--address", f.Address}, args...)
	}
	remote, local := begin(hosts), begin(here)
	await(remote)
	await(local)
	const rounds = 5
	took := map[string][]time.Duration{}
	grown := 0.0
	for range rounds {
		live := begin(hosts)
		for _, c := range []struct {
			name string
			argv []string
		}{{"live", logs("-f", live)}, {"remote", logs(remote)}, {"local", logs(local)}} {
			t := readTee(b, b.TempDir(), c.argv, watched)
			require.Zero(b, t.wrong, "lines are torn or lost: %s", c.name)
			took[c.name] = append(took[c.name], t.whole)
			if c.name != "local" {
				grown = max(grown, t.grownMiB)
			}
		}
		await(live)
	}
	rate := func(name string) float64 { return teeTasks * teeLines / median(took[name]).Seconds() }
	b.ReportMetric(rate("remote"), "lines/s")
	b.ReportMetric(rate("live"), "lines/s-live")
	b.ReportMetric(rate("local"), "lines/s-local")
	b.ReportMetric(rate("remote")/rate("local"), "of-local")
	b.ReportMetric(grown, "MiB-grown")
	b.ReportMetric(0, "ns/op")
}
