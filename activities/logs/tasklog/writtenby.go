package tasklog

import (
	"sort"
	"time"
)

// WrittenBy returns a function that returns the earliest recorded time by which a stream's bytes
// before an offset were written, or zero if none is recorded. The function reads a process's
// records once, and must not be called concurrently.
func WrittenBy(runDir string) func(s Stream, offset int64) time.Time {
	known := map[string][]record{}
	return func(s Stream, offset int64) time.Time {
		dir, i := ProcessDir(runDir, s.Attempt, s.Rank), s.index()
		records, ok := known[dir]
		if !ok {
			records = readTimes(dir)
			known[dir] = records
		}
		// Sizes only grow, so the records are sorted by size.
		at := sort.Search(len(records), func(n int) bool { return records[n].sizes[i] >= offset })
		if at == len(records) {
			return time.Time{}
		}
		return time.Unix(0, records[at].at)
	}
}
