package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// BenchmarkRemoteOutput measures the console of 4 tasks on 4 other hosts, with 200,000 lines of
// 100 bytes each: of `clusterrun run -H`, by ssh to hosts in namespaces, and of `clusterrun run
// --remote` on host workers. The benchmark reads the pipe and checks every line. The floor of
// ssh is a bare program that puts prefixes before the lines of 4 ssh connections, which all
// share the CPUs of this machine. Figures are lines of all tasks by time, of the whole command
// and from the first line to the last. Goals: 400,000 lines/s from the first to the last, or
// half of the floor if that is less, and the memory of the command and of each host worker
// grows by 16 MiB at most.
func BenchmarkRemoteOutput(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	writer := []string{self, "write-lines", strconv.Itoa(teeLines)}
	b.Run("ssh", func(b *testing.B) {
		hosts := harness.StartSSHHosts(b, teeTasks)
		home := b.TempDir()
		timed(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
		b.Cleanup(func() { stopOwnServer(b, home) })
		argv := append([]string{harness.Clusterrun(b), "run", "--launch-agent", hosts.Agent, "-H", "a,b,c,d", "--dir", "/", "--"}, writer...)
		floor := append(append([]string{self, "prefix", strconv.Itoa(teeTasks)}, strings.Fields(hosts.Agent)...), "a")
		var floors []time.Duration
		for range 3 {
			t := readTee(b, home, append(floor, writer...), func() []int { return nil })
			require.Zero(b, t.wrong, "lines of the floor are torn or lost")
			floors = append(floors, t.steady)
		}
		b.ReportMetric(teeTasks*teeLines/median(floors).Seconds(), "lines/s-floor")
		output(b, home, argv,
			func() []int {
				return slices.DeleteFunc(ownProcesses(home), func(pid int) bool {
					program, _, _ := strings.Cut(harness.Cmdline(pid), " ") // not ssh, nor the server
					return filepath.Base(program) != "clusterrun"
				})
			},
			func() []int { return hosts.Workers(hosts.Hosts[0]) })
	})
	b.Run("remote", func(b *testing.B) {
		f := newFixture(b)
		var pids []int
		for _, name := range []string{"a", "b", "c", "d"} {
			w := f.StartWorker(b, "--queue", "remote", "--host-name", name, "--slots", "1", "--listen", "127.0.0.1", "--log-dir", "/proc/self/cwd/logs")
			pids = append(pids, w.Process.Cmd.Process.Pid, w.Side())
		}
		argv := append([]string{harness.Clusterrun(b), "run", "--address", f.Address, "--remote", "--queue", "remote", "-n", strconv.Itoa(teeTasks), "--dir", "/", "--"}, writer...)
		output(b, b.TempDir(), argv, func() []int { return pids })
	})
}

// output reports what readTee measures of a command. Each round watches one of the programs.
func output(b *testing.B, home string, argv []string, watched ...func() []int) {
	b.Helper()
	var whole, steady []time.Duration
	grown := 0.0
	for i := range 6 {
		t := readTee(b, home, argv, watched[i%len(watched)])
		require.Zero(b, t.wrong, "lines are torn or lost")
		whole, steady, grown = append(whole, t.whole), append(steady, t.steady), max(grown, t.grownMiB)
	}
	b.ReportMetric(teeTasks*teeLines/median(whole).Seconds(), "lines/s")
	b.ReportMetric(teeTasks*teeLines/median(steady).Seconds(), "lines/s-steady")
	b.ReportMetric(grown, "MiB-grown")
	b.ReportMetric(0, "ns/op")
}
