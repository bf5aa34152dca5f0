package bench

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
)

// runs is the number of runs of each command. Commands that are compared alternate.
const runs = 25

// BenchmarkRun measures the whole of `clusterrun run`: without a running server, with one, and
// with eight processes compared with mpirun of the same program.
func BenchmarkRun(b *testing.B) {
	b.Run("cold", func(b *testing.B) {
		var took series
		for range 5 {
			home := b.TempDir()
			took.run(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
			stopOwnServer(b, home)
		}
		took.report(b, 300*time.Millisecond)
	})
	home := b.TempDir()
	timed(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
	b.Cleanup(func() { stopOwnServer(b, home) })
	b.Run("warm", func(b *testing.B) {
		var took series
		for range runs {
			took.run(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
		}
		took.report(b, 40*time.Millisecond)
	})
	b.Run("N=8 against mpirun", func(b *testing.B) {
		mpirun, err := exec.LookPath("mpirun")
		if err != nil {
			b.Skip("mpirun is not installed (Debian: openmpi-bin)")
		}
		var ours, theirs series
		for range runs {
			theirs.run(b, home, mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "8", "true")
			ours.run(b, home, harness.Clusterrun(b), "run", "-n", "8", "--", "true")
		}
		b.ReportMetric(ms(median(theirs.took)), "ms/mpirun")
		b.ReportMetric(ms(slices.Min(theirs.took)), "best-ms/mpirun")
		b.ReportMetric(ms(median(theirs.cpu)), "cpu-ms/mpirun")
		ours.report(b, median(theirs.took))
	})
}

// series holds the times of a command's runs, and the processor time of the command and the
// processes that it waited for, which is the steadier figure on a busy machine.
type series struct{ took, cpu []time.Duration }

func (s *series) run(b *testing.B, home string, argv ...string) {
	b.Helper()
	took, cpu := execute(b, home, argv...)
	s.took, s.cpu = append(s.took, took), append(s.cpu, cpu)
}

func (s *series) report(b *testing.B, goal time.Duration) {
	b.ReportMetric(ms(slices.Min(s.took)), "best-ms/run")
	b.ReportMetric(ms(median(s.cpu)), "cpu-ms/run")
	report(b, s.took, goal)
}

// execute returns how long a command took, and how much processor time.
func execute(b *testing.B, home string, argv ...string) (took, cpu time.Duration) {
	b.Helper()
	took, cpu, err := (&measure.Place{Dir: home, Env: harness.Env(home)}).Time(b.Context(), argv)
	require.NoError(b, err)
	return took, cpu
}

func timed(b *testing.B, home string, argv ...string) time.Duration {
	b.Helper()
	took, _ := execute(b, home, argv...)
	return took
}

func report(b *testing.B, took []time.Duration, goal time.Duration) {
	b.ReportMetric(ms(median(took)), "ms/run")
	b.ReportMetric(ms(goal), "ms/goal")
	b.ReportMetric(ms(median(took))/ms(goal), "of-goal")
	b.ReportMetric(0, "ns/op")
}
