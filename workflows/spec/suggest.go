package spec

import "strings"

// Nearest picks the known name that was probably meant, or "". Case, hyphens
// and underscores are ignored, so that maxRestarts finds max_restarts.
func Nearest(name string, known []string) string {
	a := foldName(name)
	if a == "" || len(a) > 2*maxQuoted {
		return ""
	}
	best, bestDistance := "", max(1, len(a)/3)+1
	for _, k := range known {
		if d := editDistance(a, foldName(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func foldName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// editDistance counts the letters to insert, drop, replace or swap with their
// neighbour.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
