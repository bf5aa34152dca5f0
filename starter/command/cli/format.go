package cli

import (
	"strings"
	"time"
)

// Ago formats the time since t. If the server's clock is ahead, t may be after now; Ago then
// returns 0s.
func Ago(now, t time.Time) string { return Roughly(max(0, now.Sub(t))) }

// MaxNames is the maximum number of variable names in a message.
const MaxNames = 8

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Roughly formats a time span, rounded to seconds or, under 10 s, to tenths.
func Roughly(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strings.TrimSuffix(d.Round(100*time.Millisecond).String(), ".0s")
	default:
		return d.Round(time.Second).String()
	}
}
