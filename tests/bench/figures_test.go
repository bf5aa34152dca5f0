package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

const (
	// A figure is measured for a few seconds, if that allows enough rounds.
	figureTime = 5 * time.Second
	minRounds  = 3
	maxRounds  = 25
)

// newOwnPlace returns a place with a server, and clusterrun.
func newOwnPlace(b *testing.B, env []string) (*Place, *Launcher, *embedded.Foreground) {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	p := &Place{Dir: b.TempDir(), Env: env, program: []string{self, "program"}}
	server, err := p.server().StartForeground(b.Context(), 0, 0, "--headless")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop(context.Background())) })
	b.Log(ThisMachine())
	return p, Clusterrun(harness.Clusterrun(b), p.StateDir(), func() []int { return []int{server.PID} }), server
}

func (p *Place) server() embedded.Home {
	return embedded.Home{Dir: filepath.Join(p.StateDir(), "server")}
}

// BenchmarkFigures measures for about a minute what users wait for most. Each figure comes with a
// lower bound from the same run, such as a shell with the same processes. Each figure is a separate
// benchmark, so that benchstat can compare two files.
func BenchmarkFigures(b *testing.B) {
	p, ours, server := newOwnPlace(b, harness.Env(b.TempDir()))
	shell := Shell()
	inTurns := func(w work, floor func(context.Context, *Launcher) (float64, error)) {
		b.Run(w.name, func(b *testing.B) {
			var all, floors []float64
			for begun, round := time.Now(), 0; round < minRounds || round < maxRounds && time.Since(begun) < figureTime; round++ {
				lowest, err := floor(b.Context(), shell)
				require.NoError(b, err)
				own, err := w.measure(b.Context(), ours)
				require.NoError(b, err)
				all, floors = append(all, own), append(floors, lowest)
			}
			report(b, w.unit, all, floors)
		})
	}
	for _, w := range p.works(1, someTasks, 64) {
		inTurns(w, w.measure)
	}
	chief := WithChief(harness.Clusterrun(b), p.StateDir())
	inTurns(work{name: fmt.Sprintf("the chief of %d ends, until all have", someTasks), unit: "ms", measure: inMS(func(ctx context.Context, _ *Launcher) (time.Duration, error) {
		return p.EndAfter(ctx, chief, someTasks, "chief")
	})}, inMS(func(ctx context.Context, l *Launcher) (time.Duration, error) {
		return p.EndAfter(ctx, l.End, someTasks, "chief")
	}))
	inTurns(work{name: fmt.Sprintf("local barrier of %d", someTasks), unit: "ms", measure: inMS(func(ctx context.Context, l *Launcher) (time.Duration, error) {
		return p.LocalBarrier(ctx, l, someTasks, 2000)
	})}, inMS(func(ctx context.Context, _ *Launcher) (time.Duration, error) { return p.Exchange(ctx, someTasks, 2000) }))
	b.Run("closure, from schedule to value", func(b *testing.B) {
		client, err := connect.Dial(b.Context(), connect.Options{Address: server.Address, Embedded: p.server().Dir}, sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), time.Minute)
		require.NoError(b, err)
		defer client.Close()
		floor, err := p.Exchange(b.Context(), 1, 2000)
		require.NoError(b, err)
		took, err := p.Closures(b.Context(), ours, client, 100)
		require.NoError(b, err)
		var list []float64
		for _, d := range took {
			list = append(list, ms(d))
		}
		report(b, "ms", list, []float64{ms(floor)})
	})
}

// report reports the median and the best, the floor's median, and the medians' ratio. The best is
// unreliable, because the first of two marks may be read late.
func report(b *testing.B, unit string, ours, floors []float64) {
	middle := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
	b.ReportMetric(middle(ours), unit)
	b.ReportMetric(slices.Min(ours), "best-"+unit)
	if floor := middle(floors); floor > 0 {
		b.ReportMetric(floor, "floor-"+unit)
		b.ReportMetric(middle(ours)/floor, "×floor")
	}
	b.ReportMetric(0, "ns/op")
}
