package spec

import (
	"fmt"
	"time"
)

// Silence is the time after which a task counts as silent, such as "10m", or [SilenceAuto]. If
// it is empty, silence is not watched.
type Silence string

// SilenceAuto learns the time from the longest pause of each process so far.
const SilenceAuto Silence = "auto"

const (
	// MinSilence is the shortest silence: a host looks every ten seconds.
	MinSilence = Duration(30 * time.Second)
	// autoSilence is the least time that is learnt, and autoPauses its ratio to the longest
	// pause: a new pause, such as the first checkpoint, must not count as silence.
	autoSilence = 10 * time.Minute
	autoPauses  = 5
)

const silenceRemedy = "write for example silence: 10m, or silence: auto; a host looks every ten seconds"

// Limit returns the time after which a process counts as silent, given its longest pause so
// far. 0 means never.
func (s Silence) Limit(longest time.Duration) time.Duration {
	if s == SilenceAuto {
		return max(autoSilence, autoPauses*longest)
	}
	d, _ := ParseDuration(string(s))
	return time.Duration(d)
}

func (s Silence) check(c *checker, path string) {
	if s == "" || s == SilenceAuto {
		return
	}
	d, err := ParseDuration(string(s))
	switch {
	case err != nil:
		c.add(path, Quote(string(s))+" is neither a time nor auto", silenceRemedy)
	case d < MinSilence:
		c.add(path, fmt.Sprintf("must be at least %s, not %s", MinSilence, d), silenceRemedy)
	case d > MaxDuration:
		c.add(path, fmt.Sprintf("must be at most ten years (87600h), not %s", d), "write a shorter one")
	}
}
