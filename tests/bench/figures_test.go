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
	"github.com/clusterrun/clusterrun/tests/measure"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

const (
	someTasks = 8
	manyTasks = 64

	// A figure is measured for a few seconds, if that allows enough rounds.
	figureTime = 5 * time.Second
	minRounds  = 3
	maxRounds  = 25
)

// BenchmarkFigures measures for about a minute what users wait for most. Each figure comes with a
// lower bound from the same run, such as a shell that starts the same processes. Each figure is a
// separate benchmark, so that benchstat can compare two files.
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
	self, err := os.Executable()
	require.NoError(b, err)
	program := []string{self, "program"}
	ours, shell := measure.Clusterrun(harness.Clusterrun(b), p.StateDir(), func() []int { return []int{server.PID} }), measure.Shell()
	chief := &measure.Launcher{End: measure.WithChief(harness.Clusterrun(b), p.StateDir())}
	b.Log(measure.ThisMachine())

	// compare measures the same thing for clusterrun and its floor.
	compare := func(name, floorIs string, floor *measure.Launcher, one func(context.Context, *measure.Launcher) (time.Duration, error)) {
		inTurns(b, name, "ms", floorIs, milliseconds(ours, one), milliseconds(floor, one))
	}
	const starts, kills, exchanges = "a shell starts the same processes", "a shell kills its group", "a byte each to a socket and back"
	for _, n := range []int{1, someTasks} {
		compare(fmt.Sprintf("run -n %d -- true, the whole command", n), starts, shell, func(ctx context.Context, l *measure.Launcher) (time.Duration, error) {
			return p.Whole(ctx, l.Launch, n)
		})
	}
	for _, n := range []int{1, someTasks, manyTasks} {
		compare(fmt.Sprintf("launch, until %d execute", n), starts, shell, func(ctx context.Context, l *measure.Launcher) (time.Duration, error) {
			return p.Launch(ctx, l, n)
		})
	}
	compare("restart of a failed process", "a shell in a loop", shell, p.Restart)
	compare(fmt.Sprintf("one of %d fails, until all have ended", someTasks), kills, shell, func(ctx context.Context, l *measure.Launcher) (time.Duration, error) {
		return p.EndAfterFailure(ctx, l.End, someTasks)
	})
	endAfterChief := func(ctx context.Context, l *measure.Launcher) (time.Duration, error) {
		return p.EndAfterChief(ctx, l.End, someTasks)
	}
	inTurns(b, fmt.Sprintf("the chief of %d ends, until all have", someTasks), "ms", kills, milliseconds(chief, endAfterChief), milliseconds(shell, endAfterChief))
	exchange := func(n int) func(context.Context, *measure.Launcher) (time.Duration, error) {
		return func(ctx context.Context, _ *measure.Launcher) (time.Duration, error) {
			return p.Exchange(ctx, n, 2000, program)
		}
	}
	inTurns(b, fmt.Sprintf("local barrier of %d", someTasks), "ms", exchanges,
		milliseconds(ours, func(ctx context.Context, l *measure.Launcher) (time.Duration, error) {
			return p.LocalBarrier(ctx, l, someTasks, 2000, program)
		}), milliseconds(shell, exchange(someTasks)))
	memory := func(l *measure.Launcher) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			many, err := p.Memory(ctx, l, manyTasks)
			if err != nil {
				return 0, err
			}
			one, err := p.Memory(ctx, l, 1)
			return float64(many-one) / (manyTasks - 1) / 1024, err
		}
	}
	inTurns(b, "memory for each process", "KiB", "a shell's own", memory(ours), memory(shell))
	b.Run("closure, from schedule to value", func(b *testing.B) {
		floor, err := p.Exchange(b.Context(), 1, 2000, program)
		require.NoError(b, err)
		took, err := p.Closures(b.Context(), ours, client, 100, program)
		require.NoError(b, err)
		var list []float64
		for _, d := range took {
			list = append(list, ms(d))
		}
		report(b, "ms", exchanges, list, []float64{ms(floor)})
	})
}

func milliseconds(l *measure.Launcher, one func(context.Context, *measure.Launcher) (time.Duration, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		took, err := one(ctx, l)
		return ms(took), err
	}
}

// inTurns alternates between clusterrun and its floor.
func inTurns(b *testing.B, name, unit, floorIs string, ours, floor func(context.Context) (float64, error)) {
	b.Run(name, func(b *testing.B) {
		var all, floors []float64
		for begun, round := time.Now(), 0; round < minRounds || round < maxRounds && time.Since(begun) < figureTime; round++ {
			lowest, err := floor(b.Context())
			require.NoError(b, err)
			own, err := ours(b.Context())
			require.NoError(b, err)
			all, floors = append(all, own), append(floors, lowest)
		}
		report(b, unit, floorIs, all, floors)
	})
}

// report reports the median and the best, the floor's median, and the medians' ratio. The best is
// unreliable, because the first of two marks may be read late.
func report(b *testing.B, unit, floorIs string, ours, floors []float64) {
	middle := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
	b.ReportMetric(middle(ours), unit)
	b.ReportMetric(slices.Min(ours), "best-"+unit)
	if floor := middle(floors); floor > 0 {
		b.Log("the floor: " + floorIs)
		b.ReportMetric(floor, "floor-"+unit)
		b.ReportMetric(middle(ours)/floor, "×floor")
	}
	b.ReportMetric(0, "ns/op")
}
