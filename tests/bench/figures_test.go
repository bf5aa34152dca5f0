package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

// BenchmarkFigures measures for about a minute what users wait for most. Each figure comes with
// a lower bound of the same run, such as a shell that starts the same processes.
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
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tUNIT\tBEST\tMEDIAN\tFLOOR\tRATIO\tTHE FLOOR IS")
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%s\t%.3g\t%.3g\t%.3g\t%.3g\t%s\n", f.Name, f.Unit, f.Best, f.Median, f.Floor, f.Ratio, f.FloorIs)
	}
	require.NoError(b, w.Flush())
	b.Logf("%s\n%s", measure.ThisMachine(), table.String())
	b.ReportMetric(0, "ns/op")
}
