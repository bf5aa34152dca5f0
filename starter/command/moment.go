package command

import (
	"strconv"
	"strings"
	"time"
)

// moment reads the value of a flag: how long ago, such as 10m or 2d, or a time. An empty value
// is the zero time.
func moment(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if days, found := strings.CutSuffix(value, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	// Without a zone it is the local one's.
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, value, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("%s %q: give how long ago, such as 10m or 2d, or a time such as %s", flag, value, now.Add(-10*time.Minute).Local().Format(time.DateTime))
}
