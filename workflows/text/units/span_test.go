package units_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 12: "12ns", 1500: "1.5µs", 250 * time.Microsecond: "250µs", time.Millisecond: "1ms",
		1540 * time.Microsecond: "1.5ms", 90 * time.Millisecond: "90ms", 999999999: "999ms", time.Second: "1s", 1960 * time.Millisecond: "1.9s",
		9999 * time.Millisecond: "9.9s", 59999 * time.Millisecond: "59s", time.Minute: "1m 00s", 64 * time.Second: "1m 04s",
		time.Hour: "1h 00m", 47*time.Hour + 59*time.Minute: "47h 59m", 51 * time.Hour: "2d 3h",
	} {
		assert.Equal(t, want, units.Span(d), d)
	}
	assert.Equal(t, "90ms", units.SpanOfSeconds(.09))
}
