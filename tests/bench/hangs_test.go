package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/tests/hangs"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// BenchmarkHangs runs 30 hangs and counts the correctly named guilty ranks. CLUSTERRUN_SEED
// chooses other hangs. Goal: at least 27 named, and no wrong rank.
func BenchmarkHangs(b *testing.B) {
	seed, _ := strconv.ParseUint(os.Getenv("CLUSTERRUN_SEED"), 10, 64)
	all := hangs.Thirty(seed)
	server := harness.StartServer(b, "--headless")
	s := hangs.NewStage(b, func(args ...string) *harness.Process { return server.StartCLI(b, args...) }, all...)
	named, wrong := 0, 0
	for _, h := range all {
		found, _ := s.Play(h)
		switch {
		case h.Named(found):
			named++
		case len(found.Outliers) > 0:
			wrong++
			b.Errorf("wrong: %s\n%s", h, text(found))
		default:
			b.Logf("not told: %s\n%s", h, text(found))
		}
	}
	b.ReportMetric(float64(len(all)), "hangs")
	b.ReportMetric(float64(named), "named")
	b.ReportMetric(float64(wrong), "wrong")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkNameTheRank is from the request for the stacks to the name of the rank and its line,
// with the start of the command. Goals: 1 s for 8 ranks of a torch program, and 3 s for 256 ranks of
// a plain one.
func BenchmarkNameTheRank(b *testing.B) {
	for _, h := range []hangs.Hang{
		{Program: "torch", Wait: "all_reduce", Deed: "load_batch_slowly", Ranks: 8, Guilty: 5},
		{Program: "python", Wait: "python", Deed: "load_batch_slowly", Ranks: 256, Guilty: 200},
	} {
		b.Run(fmt.Sprintf("%s,N=%d", h.Program, h.Ranks), func(b *testing.B) {
			server := harness.StartServer(b, "--headless")
			s := hangs.NewStage(b, func(args ...string) *harness.Process { return server.StartCLI(b, args...) }, h)
			found, took := s.Play(h)
			if !h.Named(found) {
				b.Errorf("%s\n%s", h, text(found))
			}
			b.ReportMetric(ms(took), "ms/answer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPythonHook compares the start of Python with the hook and without it. Goal: 3 ms
// more.
func BenchmarkPythonHook(b *testing.B) {
	hook, err := python.InstallHook(b.TempDir())
	require.NoError(b, err)
	start := func(env ...string) time.Duration {
		cmd := exec.Command("/usr/bin/python3", "-c", "pass")
		cmd.Env = append(harness.Env(b.TempDir(), env...), "CLUSTERRUN_STACK_SIGNAL=60")
		started := time.Now()
		require.NoError(b, cmd.Run())
		return time.Since(started)
	}
	const rounds = 60
	var with, without []time.Duration
	for range rounds {
		without = append(without, start())
		with = append(with, start("PYTHONPATH="+hook))
	}
	b.ReportMetric(ms(median(with)), "ms/start")
	b.ReportMetric(ms(median(without)), "ms/without")
	b.ReportMetric(ms(median(with))/ms(median(without)), "ratio")
	b.ReportMetric(0, "ns/op")
}

func text(f stacktree.Findings) string {
	var b strings.Builder
	_ = f.Write(&b)
	return b.String()
}
