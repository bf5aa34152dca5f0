package cli

import (
	"strings"
	"time"
)

// Ago is for a time by the server's clock, which may be ahead of ours.
func Ago(now, t time.Time) string { return Roughly(max(0, now.Sub(t))) }

// MostNames bounds the names of variables in a message.
const MostNames = 8

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Roughly writes a time span the way one says it.
func Roughly(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strings.TrimSuffix(d.Round(100*time.Millisecond).String(), ".0s")
	default:
		return d.Round(time.Second).String()
	}
}
