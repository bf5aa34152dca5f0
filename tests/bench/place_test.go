package bench

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func newPlace(t *testing.T) *Place {
	t.Helper()
	p := &Place{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, program: []string{os.Args[0], "program"}}
	t.Cleanup(func() {
		left := must.Get(os.ReadDir(p.Dir))(t)
		assert.Empty(t, left, "measurements leave files")
	})
	return p
}

func TestShellDoesAllThatIsMeasured(t *testing.T) {
	p, shell := newPlace(t), Shell()
	works := append(p.works(8), work{name: "exchange", measure: inMS(func(ctx context.Context, _ *Launcher) (time.Duration, error) { return p.Exchange(ctx, 4, 10) })})
	for _, w := range works {
		figure, err := w.measure(t.Context(), shell)
		require.NoError(t, err, w.name)
		assert.True(t, figure > 0 || w.unit == "KiB", w.name)
	}
	lines := must.Get(p.tee(t.Context(), shell))(t)
	assert.Positive(t, lines)
}

func TestMemoryIsTheLaunchersWithWhatIsBesideIt(t *testing.T) {
	p, shell := newPlace(t), Shell()
	alone := must.Get(p.Memory(t.Context(), shell, 3))(t)
	assert.Positive(t, alone)
	shell.Beside = func() []int { return []int{os.Getpid()} }
	beside := must.Get(p.Memory(t.Context(), shell, 3))(t)
	assert.Greater(t, beside, alone)
}

func TestCopiesOfAKilledShellAreLeftAndEndWithTheMeasurement(t *testing.T) {
	left := must.Get(newPlace(t).Left(t.Context(), Shell(), 3, 100*time.Millisecond))(t)
	assert.Equal(t, 3, left)
}

func TestLauncherThatEndsBeforeItsCopiesReport(t *testing.T) {
	early := &Launcher{Launch: func(string, int, []string) ([]string, error) {
		return []string{"/bin/sh", "-c", "echo no such queue; exit 7"}, nil
	}}
	_, err := newPlace(t).Launch(t.Context(), early, 2)
	assert.ErrorContains(t, err, "it has ended, and 0 of 2 processes have reported")
	assert.ErrorContains(t, err, "no such queue")
}

func TestMeasurementEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	never := &Launcher{Launch: func(string, int, []string) ([]string, error) {
		cancel()
		return []string{"sleep", "1000"}, nil
	}}
	_, err := newPlace(t).Launch(ctx, never, 1)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestSeries(t *testing.T) {
	assert.Equal(t, time.Duration(3), Series{3, 1, 2, 9, 4}.Median())
}
