package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Duration is a flag that holds a time span. Its error explains the syntax; pflag's own type
// only reports that the value is wrong.
type Duration time.Duration

func (d *Duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		if _, number := strconv.Atoi(text); number == nil {
			return fmt.Errorf("%q has no unit; write %ss, %sm or %sh", text, text, text, text)
		}
		return fmt.Errorf("%q is not a duration; for example, 3s, 90m or 1h30m", text)
	}
	*d = Duration(v)
	return nil
}

// String returns "" for 0, so that help does not show 0s as the default.
func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *Duration) Type() string { return "duration" }

func (d Duration) Spec() *spec.Duration { return spec.DurationOf(time.Duration(d)) }
