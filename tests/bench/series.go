package bench

import (
	"slices"
	"time"
)

// Series contains the times of repeated measurements.
type Series []time.Duration

// Median returns a nonempty series' median.
func (s Series) Median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
