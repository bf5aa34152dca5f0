package cli

import (
	"strconv"
	"strings"
	"time"
)

// ParseLength parses a duration: any value that [time.ParseDuration] accepts, or days, such as
// 2d.
func ParseLength(value string) (time.Duration, error) {
	if days, found := strings.CutSuffix(value, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(value)
}

// ParseTime parses a flag's value: an age, such as 10m or 2d, or a time. It returns the zero
// time for an empty value.
func ParseTime(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if d, err := ParseLength(value); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	// A time without a zone is local.
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, value, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, Usagef("%s %q: use an age, such as 10m or 2d, or a time such as %s", flag, value, now.Add(-10*time.Minute).Local().Format(time.DateTime))
}
