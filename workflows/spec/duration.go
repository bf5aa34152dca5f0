package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Duration is a time span written as a string, such as "3s" or "1h30m".
type Duration time.Duration

// MaxDuration limits every duration in a spec. It is ten years.
const MaxDuration = Duration(10 * 365 * 24 * time.Hour)

// DurationOf returns a pointer to d, for a spec's optional fields.
func DurationOf(d time.Duration) *Duration { return new(Duration(d)) }

// ParseDuration parses a string such as "3s", "90m" or "1h30m". The units are Go's: ns, us, ms,
// s, m and h. Days are not supported because their length varies.
func ParseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, valueError{Quote(text) + " is not a duration", durationRemedy}
	}
	return Duration(d), nil
}

// Std converts the duration to a [time.Duration]. A nil Duration is 0.
func (d *Duration) Std() time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// Pointer converts the duration to a [time.Duration], nil for nil.
func (d *Duration) Pointer() *time.Duration {
	if d == nil {
		return nil
	}
	v := time.Duration(*d)
	return &v
}

// String formats the duration in the syntax of [ParseDuration], in its shortest form, such as "1h"
// instead of "1h0m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalJSON encodes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON parses a string such as "3s".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf(`a duration is a string such as "3s", not %s`, cut(string(b)))
	}
	v, err := ParseDuration(s)
	if err != nil {
		return err
	}
	*d = v
	return nil
}
