package closure

import (
	"cmp"
	"slices"
)

// JoinRanges joins ranges of IDs, first and last: the result has the fewest ranges, in order.
// It reuses the memory of its argument.
func JoinRanges(ranges [][2]uint64) [][2]uint64 {
	slices.SortFunc(ranges, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	n := 0
	for _, r := range ranges {
		if n > 0 && r[0] <= ranges[n-1][1]+1 {
			ranges[n-1][1] = max(ranges[n-1][1], r[1])
			continue
		}
		ranges[n] = r
		n++
	}
	return ranges[:n]
}
