package spec

import (
	"fmt"
	"time"
)

// Silence is a duration after which a task counts as silent, such as "10m", or [SilenceAuto] or
// [SilenceNever]. If it is empty, a run of one task does not watch silence.
type Silence string

const (
	// SilenceAuto adapts to the longest pause of each process so far.
	SilenceAuto Silence = "auto"
	// SilenceNever disables the check.
	SilenceNever Silence = "never"
)

// IsWatched reports whether tasks can count as silent.
func (s Silence) IsWatched() bool { return s != "" && s != SilenceNever }

const (
	// MinSilence is the minimum, because hosts check every ten seconds.
	MinSilence = Duration(30 * time.Second)
	// autoSilence is the minimum time for [SilenceAuto], and autoPauses the ratio of that time to
	// the longest pause. A new kind of pause, such as the first checkpoint, must not count as
	// silence.
	autoSilence = 10 * time.Minute
	autoPauses  = 5
)

const silenceRemedy = "for example, silence: 10m, silence: auto or silence: never; hosts check every ten seconds"

// Limit returns how long a process must be quiet to count as silent, given its longest pause so
// far. 0 means never.
func (s Silence) Limit(longest time.Duration) time.Duration {
	if s == SilenceAuto {
		return max(autoSilence, autoPauses*longest)
	}
	d, _ := ParseDuration(string(s))
	return time.Duration(d)
}

func (s Silence) check(c *checker, path string) {
	if !s.IsWatched() || s == SilenceAuto {
		return
	}
	d, err := ParseDuration(string(s))
	switch {
	case err != nil:
		c.add(path, Quote(string(s))+" is neither a duration nor auto or never", silenceRemedy)
	case d < MinSilence:
		c.add(path, fmt.Sprintf("must be at least %s, not %s", MinSilence, d), silenceRemedy)
	case d > MaxDuration:
		c.add(path, fmt.Sprintf("must be at most ten years (87600h), not %s", d), "use a shorter time")
	}
}
