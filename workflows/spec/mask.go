package spec

import (
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// Std says which of the two output streams of a process something applies to.
// Its values are torch's: 0 none, 1 stdout, 2 stderr, 3 both.
type Std int

// The values of [Std].
const (
	StdNone Std = 0
	StdOut  Std = 1
	StdErr  Std = 2
	StdAll  Std = StdOut | StdErr
)

// Out reports whether stdout is meant.
func (s Std) Out() bool { return s&StdOut != 0 }

// Err reports whether stderr is meant.
func (s Std) Err() bool { return s&StdErr != 0 }

// StdMasks is a [Std] for each rank, as `redirects` and `tee` give it.
// The zero value means none for every rank.
type StdMasks struct {
	all  Std
	some []stdRange
}

// stdRange is the mask of the ranks from first to last.
type stdRange struct {
	first, last int
	std         Std
}

// Of returns the mask of a rank: none for one that the text does not name.
func (m StdMasks) Of(rank int) Std {
	// Given twice, the last counts, as with torch.
	for i := len(m.some) - 1; i >= 0; i-- {
		if r := m.some[i]; rank >= r.first && rank <= r.last {
			return r.std
		}
	}
	return m.all
}

// highest returns the highest rank that the text names; -1 when it names none.
func (m StdMasks) highest() int {
	highest := -1
	for _, r := range m.some {
		highest = max(highest, r.last)
	}
	return highest
}

var stdRegexp = lazyregexp.New(stdPattern)

// ParseStd reads a mask: one digit for all ranks ("3"), or a list by rank,
// where ranks that are left out get none ("0:3,1-7:1"). Unlike torch's, it
// takes ranks of any length, and ranges.
func ParseStd(text string) (StdMasks, error) {
	if !stdRegexp().MatchString(text) {
		return StdMasks{}, valueError{
			Quote(text) + " is none of 0 (neither stream), 1 (stdout), 2 (stderr) and 3 (both), nor a list of them by rank",
			`write "3" for all ranks, or "0:3,1-7:1" by rank`,
		}
	}
	if len(text) == 1 {
		return StdMasks{all: stdOf(text)}, nil
	}
	var m StdMasks
	for part := range strings.SplitSeq(text, ",") {
		ranks, std, _ := strings.Cut(part, ":")
		first, last, isRange := strings.Cut(ranks, "-")
		if !isRange {
			last = first
		}
		r := stdRange{std: stdOf(std)}
		var err1, err2 error
		r.first, err1 = strconv.Atoi(first)
		r.last, err2 = strconv.Atoi(last)
		switch {
		case err1 != nil || err2 != nil || r.last >= MaxTasks:
			return StdMasks{}, valueError{Quote(part) + " names a rank beyond any run", "ranks go from 0 to " + strconv.Itoa(MaxTasks-1)}
		case r.first > r.last:
			return StdMasks{}, valueError{Quote(part) + " is a range that runs backwards", "write the lower rank first"}
		}
		m.some = append(m.some, r)
	}
	return m, nil
}

// stdOf reads one digit, which the pattern has found to be one of 0 to 3.
func stdOf(digit string) Std { return Std(digit[0] - '0') }
