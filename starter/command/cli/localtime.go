package cli

import (
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// LocalTime is how a time is shown to people: in their zone, which is named.
const LocalTime = "2006-01-02 15:04:05 MST"

// utcTime matches times in what a run says. It is in UTC, since it is kept in the run's history
// for readers anywhere. One that is part of a name, such as those of runs that a schedule has
// started, is matched with what is before it.
var utcTime = lazyregexp.New(`(?:\S*-)?\b\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{3})? UTC|T\d\d:\d\d:\d\dZ)\b`)

// InLocalTime returns what a run says with its times in the zone of whoever reads it.
func InLocalTime(text string) string {
	return utcTime().ReplaceAllStringFunc(text, func(written string) string {
		layout, shown := "2006-01-02 15:04:05 UTC", LocalTime
		switch {
		case strings.HasSuffix(written, "Z"):
			layout = time.RFC3339
		case strings.Contains(written, "."):
			shown = "2006-01-02 15:04:05.000 MST"
		}
		at, err := time.Parse(layout, written)
		if err != nil {
			return written
		}
		return at.Local().Format(shown)
	})
}
