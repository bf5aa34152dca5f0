package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"":                          {},
		"10m":                       now.Add(-10 * time.Minute),
		"0s":                        now,
		"2d":                        now.AddDate(0, 0, -2),
		"2026-11-20":                time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2026-11-21T09:00:00Z":      now.Add(-time.Hour),
		"2026-11-21T10:00:00+02:00": now.Add(-2 * time.Hour),
		"2026-11-21T09:00:00.5Z":    now.Add(-time.Hour + 500*time.Millisecond),
		"2026-11-21 09:00:00":       time.Date(2026, 11, 21, 9, 0, 0, 0, time.Local),
	} {
		at, err := ParseTime("--since", value, now)
		require.NoError(t, err, value)
		assert.True(t, want.Equal(at), "%s: %s", value, at)
	}
	for _, value := range []string{"-10m", "yesterday", "10", "-2d", "d"} {
		var usage *UsageError
		_, err := ParseTime("--since", value, now)
		assert.ErrorAs(t, err, &usage, value)
		assert.ErrorContains(t, err, "--since")
		assert.ErrorContains(t, err, now.Add(-10*time.Minute).Local().Format(time.DateTime))
	}
}
