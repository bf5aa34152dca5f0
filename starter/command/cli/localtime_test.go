package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestInLocalTime(t *testing.T) {
	zone := time.Local
	t.Cleanup(func() { time.Local = zone })
	time.Local = time.FixedZone("CET", 3600)
	for said, want := range map[string]string{
		"after 2 restarts, at 2026-11-21 23:00:01.250 UTC.": "after 2 restarts, at 2026-11-22 00:00:01.250 CET.",
		"have until 2026-11-21 10:00:00 UTC":                "have until 2026-11-21 11:00:00 CET",
		"worker-1 (since 2026-11-21T10:00:00Z)":             "worker-1 (since 2026-11-21 11:00:00 CET)",
		"run nightly-2026-11-21T10:00:00Z: succeeded":       "run nightly-2026-11-21T10:00:00Z: succeeded",
		"a-b-2026-11-21T10:00:00Z 2026-11-21T10:00:00Z":     "a-b-2026-11-21T10:00:00Z 2026-11-21 11:00:00 CET",
		"2026-99-21 10:00:00 UTC, 10:00 UTC":                "2026-99-21 10:00:00 UTC, 10:00 UTC",
	} {
		assert.Equal(t, want, InLocalTime(said))
	}
}
