package bench

import (
	"fmt"
	"testing"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// BenchmarkSweep measures a short trial, two at a time, and compares it with xargs -P in the same
// run. Each trial is a separate run.
func BenchmarkSweep(b *testing.B) {
	home := b.TempDir()
	run := harness.Clusterrun(b) + " run"
	if s := startServer(b); s.Database != nil {
		run += " --address " + s.Address
	} else {
		s.Kill() // it has its own
		b.Cleanup(func() { stopOwnServer(b, home) })
	}
	timed(b, home, "sh", "-c", run+" -- true") // starts the server
	const trials = 200
	for name, command := range map[string]string{"true": "true", "python": "python3 -c 'import json'"} {
		b.Run(name, func(b *testing.B) {
			each := func(script string) float64 {
				return ms(timed(b, home, "sh", "-c", fmt.Sprintf(script, trials-1, command))) / trials
			}
			ours := each(run + " -q --at-most 2 --array n=0..%d -- %s")
			b.ReportMetric(ours, "ms/trial")
			b.ReportMetric(ours/each("seq 0 %d | xargs -P 2 -n 1 %s"), "of-xargs")
			b.ReportMetric(0, "ns/op")
		})
	}
}
