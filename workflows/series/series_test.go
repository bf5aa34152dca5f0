package series

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var began = time.Unix(1_800_000_000, 0).UTC()

// samples returns a sample every 10 s, with the CPU busy in every second one.
func samples(n int) []Point {
	points := make([]Point, n)
	for i := range points {
		cpus := float64(i % 2)
		points[i] = Point{From: began.Add(time.Duration(i) * 10 * time.Second), Seconds: 10, CPUs: cpus, MaxCPUs: cpus, RSSBytes: float64(i), Steps: 5, StepSeconds: 2, MaxStepSeconds: 2}
	}
	return points
}

// A day fits into 160 points: fine at its end, and coarse at its start.
func TestADay(t *testing.T) {
	const day, most = 24 * 360, 160
	all := samples(day)
	var kept []Point
	for _, p := range all {
		if kept = append(kept, p); len(kept) >= 2*most {
			kept = Coarsen(kept, most)
		}
	}
	kept = Coarsen(kept, most)
	require.Len(t, kept, most)
	length := func(age time.Duration) time.Duration {
		at := kept[len(kept)-1].To().Add(-age)
		for _, p := range kept {
			if p.To().After(at) {
				return time.Duration(p.Seconds) * time.Second
			}
		}
		return 0
	}
	assert.Less(t, length(time.Minute), time.Minute)
	assert.Less(t, length(time.Hour), 6*time.Minute)
	assert.Less(t, length(23*time.Hour), 35*time.Minute)
	assert.Equal(t, began, kept[0].From)

	total, want := Total(kept), Total(all)
	assert.InDelta(t, 0.5, total.CPUs, 1e-6)
	assert.InDelta(t, want.Steps, total.Steps, 1e-3)
	assert.Equal(t, want.RSSBytes, total.RSSBytes)
	assert.InDelta(t, 86400, total.Seconds, 1e-6)
	assert.InDelta(t, 2, total.StepSeconds, 1e-6)
}

func TestCoarsen(t *testing.T) {
	assert.Empty(t, Coarsen(nil, 3))
	assert.Len(t, Coarsen(samples(3), 3), 3)
	one := Coarsen(samples(4), 1)
	require.Len(t, one, 1)
	assert.Equal(t, Point{From: began, Seconds: 40, CPUs: 0.5, MaxCPUs: 1, RSSBytes: 3, Steps: 20, StepSeconds: 2, MaxStepSeconds: 2}, one[0])
}

func TestTotal(t *testing.T) {
	assert.Zero(t, Total(nil))
	// A gap of an hour affects only the length.
	gap := []Point{{From: began, Seconds: 10, CPUs: 1}, {From: began.Add(time.Hour), Seconds: 10, CPUs: 3}, {From: began.Add(2 * time.Hour), Seconds: 20, CPUs: 2}}
	total := Total(gap)
	assert.InDelta(t, 2, total.CPUs, 1e-9)
	assert.InDelta(t, 7220, total.Seconds, 1e-9)
}

func TestResample(t *testing.T) {
	to := began.Add(40 * time.Second)
	grid := Resample(samples(4), began, to, 2)
	require.Len(t, grid, 2)
	for i, p := range grid {
		assert.Equal(t, began.Add(time.Duration(i)*20*time.Second), p.From)
		assert.InDelta(t, 20, p.Seconds, 1e-9)
		assert.InDelta(t, 0.5, p.CPUs, 1e-9)
		assert.InDelta(t, 1, p.MaxCPUs, 1e-9)
		assert.InDelta(t, 10, p.Steps, 1e-9)
	}
	fine := Resample(samples(1), began, began.Add(20*time.Second), 4)
	assert.InDelta(t, 5, fine[1].Seconds, 1e-9)
	assert.InDelta(t, 2.5, fine[1].Steps, 1e-9)
	assert.Zero(t, fine[2].Seconds, "nothing is known")
	assert.Empty(t, Resample(samples(3), began, began, 0))
	assert.Zero(t, Resample(samples(3), began, began, 1)[0].Seconds)
}

func TestRecords(t *testing.T) {
	var b []byte
	for _, p := range samples(3) {
		b = Append(b, p)
	}
	assert.Len(t, b, 3*RecordSize)
	assert.Equal(t, samples(3), Parse(b))
	assert.Len(t, Parse(b[:len(b)-1]), 2, "the writer was killed")
	assert.Len(t, Parse(append(Append(nil, Point{From: began.Add(-time.Hour), Seconds: -1}), b...)), 3)
	assert.Empty(t, Parse(nil))
}

// The points of any file can be encoded as JSON, and coarsening preserves their sums and maxima.
func FuzzPoints(f *testing.F) {
	var b []byte
	for _, p := range samples(20) {
		b = Append(b, p)
	}
	f.Add(b, 5)
	f.Add([]byte("nonsense of some length, which is more than that of a record of a file"), 1)
	random := make([]byte, 100*RecordSize)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	f.Add(random, 7)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		if len(b) > 600*RecordSize {
			t.Skip("readers bound a file")
		}
		most = 1 + max(0, most)%300
		points := Parse(b)
		_, err := json.Marshal(points)
		require.NoError(t, err)
		before, count := Total(points), len(points)
		for _, p := range Resample(points, before.From, before.To(), most) {
			require.GreaterOrEqual(t, p.Seconds, 0.0)
			require.LessOrEqual(t, p.CPUs, max(before.MaxCPUs, before.CPUs, highest(points))*(1+1e-6))
		}
		points = Coarsen(points, most)
		require.LessOrEqual(t, len(points), most)
		if count <= most {
			require.Len(t, points, count)
		}
		for i, p := range points {
			require.True(t, i == 0 || !p.From.Before(points[i-1].From), "they are in order")
		}
		after := Total(points)
		require.Equal(t, before.RSSBytes, after.RSSBytes)
		require.Equal(t, before.MaxCPUs, after.MaxCPUs)
		require.Equal(t, before.From, after.From)
		require.InEpsilon(t, 1+before.Seconds, 1+after.Seconds, 1e-6)
		require.InEpsilon(t, 1+before.Steps, 1+after.Steps, 1e-6)
		_, err = json.Marshal(after)
		require.NoError(t, err)
	})
}

func highest(points []Point) (cpus float64) {
	for _, p := range points {
		cpus = max(cpus, p.CPUs)
	}
	return cpus
}
