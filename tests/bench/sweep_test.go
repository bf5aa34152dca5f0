package bench

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// BenchmarkSweep compares sweeps of short trials, two at once, with xargs -P and, if it is
// installed, GNU parallel, by the time of a trial in the same run. Goals: of `true` at most 1.5
// times the time of GNU parallel, and of a start of Python no more than the time of xargs.
func BenchmarkSweep(b *testing.B) {
	home := b.TempDir()
	run := harness.Clusterrun(b) + " run"
	if s := startServer(b); s.Database != nil {
		run += " --address " + s.Address
	} else {
		s.Kill() // it has one of its own
		b.Cleanup(func() { stopOwnServer(b, home) })
	}
	timed(b, home, "sh", "-c", run+" -- true") // starts the server
	for _, c := range []struct {
		name, command    string
		trials, parallel int
	}{
		{"true", "true", 5000, 500},
		{"python", "python3 -c 'import json'", 1000, 200},
	} {
		b.Run(c.name, func(b *testing.B) {
			each := func(n int, script string) float64 {
				return ms(timed(b, home, "sh", "-c", fmt.Sprintf(script, n-1, c.command))) / float64(n)
			}
			ours := each(c.trials, run+" -q --at-most 2 --array n=0..%d -- %s")
			xargs := each(c.trials, "seq 0 %d | xargs -P 2 -n 1 %s")
			b.ReportMetric(ours, "ms/trial")
			b.ReportMetric(ours/xargs, "of-xargs")
			if _, err := exec.LookPath("parallel"); err != nil {
				b.Log("GNU parallel is not installed")
			} else {
				b.ReportMetric(ours/each(c.parallel, `seq 0 %d | parallel -j 2 "%s {}"`), "of-parallel")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
