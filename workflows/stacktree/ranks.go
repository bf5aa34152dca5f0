package stacktree

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Range is the ranks from First to Last, inclusive.
type Range struct{ First, Last int }

// Ranks is a set of ranks, as sorted ranges with gaps between them.
type Ranks []Range

// RanksOf returns a set of ranks.
func RanksOf(ranks ...int) Ranks {
	all := make(Ranks, 0, len(ranks))
	for _, r := range ranks {
		all = append(all, Range{r, r})
	}
	return all.normal()
}

// normal sorts the ranges and joins adjacent ones.
func (s Ranks) normal() Ranks {
	slices.SortFunc(s, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var out Ranks
	for _, r := range s {
		if last := len(out) - 1; last >= 0 && r.First <= out[last].Last+1 {
			out[last].Last = max(out[last].Last, r.Last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Union returns the ranks in either set.
func (s Ranks) Union(t Ranks) Ranks { return slices.Concat(s, t).normal() }

// Len returns the number of ranks.
func (s Ranks) Len() int {
	n := 0
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// Has reports whether the set contains a rank.
func (s Ranks) Has(rank int) bool {
	return slices.ContainsFunc(s, func(r Range) bool { return r.First <= rank && rank <= r.Last })
}

// First returns the lowest n ranks.
func (s Ranks) First(n int) []int {
	var out []int
	for _, r := range s {
		for i := r.First; i <= r.Last && len(out) < n; i++ {
			out = append(out, i)
		}
	}
	return out
}

// String formats the set as "0-1,3".
func (s Ranks) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = strconv.Itoa(r.First)
		if r.Last > r.First {
			parts[i] += "-" + strconv.Itoa(r.Last)
		}
	}
	return strings.Join(parts, ",")
}

// words returns "rank 3" or "ranks 0-1,3", and the number of ranges that do not fit on a line.
func (s Ranks) words() string {
	const most = 8
	if s.Len() == 1 {
		return "rank " + s.String()
	}
	if len(s) > most {
		return fmt.Sprintf("ranks %s and %d more", s[:most], s[most:].Len())
	}
	return "ranks " + s.String()
}

// MarshalText returns the same as [Ranks.String].
func (s Ranks) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the result of [Ranks.MarshalText].
func (s *Ranks) UnmarshalText(text []byte) error {
	var out Ranks
	for part := range strings.SplitSeq(string(text), ",") {
		if part == "" {
			continue
		}
		first, last, some := strings.Cut(part, "-")
		if !some {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from {
			return fmt.Errorf("%q is not a range of ranks; write, for example, 3 or 0-2", part)
		}
		out = append(out, Range{from, to})
	}
	*s = out.normal()
	return nil
}

// minus returns the ranks that are not in t.
func (s Ranks) minus(t Ranks) Ranks {
	var out Ranks
	for _, r := range s {
		from := r.First
		for _, cut := range t {
			if cut.Last < from || cut.First > r.Last {
				continue
			}
			if cut.First > from {
				out = append(out, Range{from, cut.First - 1})
			}
			from = cut.Last + 1
		}
		if from <= r.Last {
			out = append(out, Range{from, r.Last})
		}
	}
	return out
}
