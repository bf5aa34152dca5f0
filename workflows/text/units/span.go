package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span formats a duration in its largest units, with at least two digits: 1.5ms, 90ms, 12s, 3m 04s,
// 2d 3h. Negative durations are 0s.
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Microsecond:
		return d.String()
	case d < time.Millisecond:
		return digits(d, time.Microsecond, "µs")
	case d < time.Second:
		return digits(d, time.Millisecond, "ms")
	case d < time.Minute:
		return digits(d, time.Second, "s")
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours()/24), int(d.Hours())%24)
}

// SpanOfSeconds formats a number of seconds like Span.
func SpanOfSeconds(seconds float64) string {
	return Span(time.Duration(math.Round(seconds * float64(time.Second))))
}

// digits formats a duration in a unit. Numbers below ten get one decimal.
func digits(d, unit time.Duration, name string) string {
	if d >= 10*unit {
		return strconv.FormatInt(int64(d/unit), 10) + name
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(d/(unit/10))/10, 'f', 1, 64), ".0") + name
}
