package bench

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// BenchmarkRunBySSH measures the whole of `clusterrun run -H` on hosts with only sshd, one
// process each, compared with mpirun of the same program over the same sshd.
func BenchmarkRunBySSH(b *testing.B) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		b.Skip("mpirun is not installed (Debian: openmpi-bin)")
	}
	hosts := harness.StartSSHHosts(b, 8)
	home := b.TempDir()
	timed(b, home, harness.Clusterrun(b), "run", "-n", "1", "--", "true")
	b.Cleanup(func() { stopOwnServer(b, home) })
	for _, n := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			var names []string
			for _, h := range hosts.Hosts[:n] {
				names = append(names, h.Name)
			}
			list := strings.Join(names, ",")
			var ours, theirs []time.Duration
			for range runs {
				theirs = append(theirs, timed(b, home, mpirun, "--allow-run-as-root", "--mca", "plm_rsh_agent", hosts.Agent, "-H", list, "/bin/true"))
				ours = append(ours, timed(b, home, harness.Clusterrun(b), "run", "--launch-agent", hosts.Agent, "-H", list, "--dir", "/", "--", "/bin/true"))
			}
			b.ReportMetric(ms(median(theirs)), "ms/mpirun")
			b.ReportMetric(ms(slices.Min(ours)), "ms/best")
			report(b, ours, median(theirs)*13/10)
		})
	}
}
