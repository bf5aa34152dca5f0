package bench

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// BenchmarkHangs runs 30 hangs and counts the correctly named guilty ranks. CLUSTERRUN_SEED
// selects different hangs. Goal: at least 27 named, and no wrong rank.
func BenchmarkHangs(b *testing.B) {
	seed, _ := strconv.ParseUint(os.Getenv("CLUSTERRUN_SEED"), 10, 64)
	all := harness.ThirtyHangs(seed)
	server := harness.StartServer(b, "--headless")
	s := harness.NewHangStage(b, func(args ...string) *harness.Process { return server.StartCLI(b, args...) }, all...)
	named, wrong := 0, 0
	for _, h := range all {
		found := s.Play(h)
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

func text(f stacktree.Findings) string {
	var b strings.Builder
	_ = f.Write(&b)
	return b.String()
}
