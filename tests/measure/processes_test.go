package measure

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// TestMain also makes this program the programs used in measurements.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "program" {
		if err := Program(os.Args[2], os.Args[3:]); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newPlace(t *testing.T) *Place {
	t.Helper()
	p := &Place{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}}
	t.Cleanup(func() {
		left := must.Get(os.ReadDir(p.Dir))(t)
		assert.Empty(t, left, "measurements leave files")
	})
	return p
}

func TestShellDoesAllThatIsMeasured(t *testing.T) {
	p, shell := newPlace(t), Shell()
	for what, measure := range map[string]func() (time.Duration, error){
		"launch":  func() (time.Duration, error) { return p.Launch(t.Context(), shell, 8) },
		"restart": func() (time.Duration, error) { return p.Restart(t.Context(), shell) },
		"failure": func() (time.Duration, error) { return p.EndAfterFailure(t.Context(), shell.End, 8) },
		"whole":   func() (time.Duration, error) { return p.Whole(t.Context(), shell.Launch, 8) },
		"exchange": func() (time.Duration, error) {
			return p.Exchange(t.Context(), 4, 10, []string{os.Args[0], "program"})
		},
	} {
		took, err := measure()
		require.NoError(t, err, what)
		assert.Positive(t, took, what)
	}
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
