package cli

import (
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// LocalTime is the layout of times in messages. They are in the local zone, which is named.
const LocalTime = "2006-01-02 15:04:05 MST"

// utcTime matches times in messages of a run. They are in UTC, since the history of the run
// keeps them for readers in any zone. A time that is part of a name, as in runs of a schedule,
// is matched together with the prefix of the name, so that it stays as it is.
var utcTime = lazyregexp.New(`(?:\S*-)?\b\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{3})? UTC|T\d\d:\d\d:\d\dZ)\b`)

// InLocalTime returns a message of a run with its times in the local zone.
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
