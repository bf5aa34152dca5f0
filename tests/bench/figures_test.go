package bench

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

// BenchmarkFigures measures for about a minute what users wait for most. Each figure comes with
// a lower bound of the same run, such as a shell that starts the same processes. Each figure is
// a benchmark of its own, so that benchstat can compare two files of them.
func BenchmarkFigures(b *testing.B) {
	dir := b.TempDir()
	p := &measure.Place{Dir: dir, Env: harness.Env(dir)}
	home := embedded.Home{Dir: filepath.Join(p.StateDir(), "server")}
	server, err := home.StartForeground(b.Context(), 0, 0, "--headless")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop(context.Background())) })
	client, err := connect.Dial(b.Context(), connect.Options{Address: server.Address, Embedded: home.Dir}, sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), time.Minute)
	require.NoError(b, err)
	defer client.Close()
	m := &measure.Measurement{
		Place: p, Client: client,
		Ours:    measure.Clusterrun(harness.Clusterrun(b), p.StateDir(), func() []int { return []int{server.PID} }),
		Chief:   measure.WithChief(harness.Clusterrun(b), p.StateDir()),
		Program: program(b),
		Tell:    func(text string) { b.Log(text) },
	}
	figures, err := m.Figures(b.Context())
	require.NoError(b, err)
	b.Log(measure.ThisMachine())
	for _, f := range figures {
		b.Run(f.Name, func(b *testing.B) {
			b.ReportMetric(f.Median, f.Unit)
			b.ReportMetric(f.Best, "best-"+f.Unit)
			if f.Floor > 0 {
				b.Log("the floor: " + f.FloorIs)
				b.ReportMetric(f.Floor, "floor-"+f.Unit)
				b.ReportMetric(f.Ratio, "×floor")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
