package measure

import (
	"slices"
	"time"
)

// Series holds the times of repeated measurements.
type Series []time.Duration

// Median is of a series that is not empty.
func (s Series) Median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// Milliseconds returns a duration as a number to print.
func Milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
