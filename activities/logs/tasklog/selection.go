package tasklog

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Selection selects a part of a run's output. The zero Selection selects all of it.
type Selection struct {
	// Ranks are the ranks of the tasks; nil means all.
	Ranks []int `json:"ranks,omitzero"`
	// OnlyStdout and OnlyStderr select a single stream.
	OnlyStdout bool `json:"only_stdout,omitempty"`
	OnlyStderr bool `json:"only_stderr,omitempty"`
	// Attempts are numbers of processes; empty means all. Last adds each task's last process and
	// all later ones. Latest contains the number of the last one by rank, if there is one.
	Attempts []int       `json:"attempts,omitempty"`
	Last     bool        `json:"last,omitempty"`
	Latest   map[int]int `json:"latest,omitempty"`
	// Since, unless it is zero, excludes earlier output, as the function [Since] does.
	Since time.Time `json:"since,omitzero"`
	// Tail selects the last lines of each file; 0 means all.
	Tail int `json:"tail,omitempty"`
}

// HasTask reports whether output of the task with the given rank is selected.
func (s Selection) HasTask(rank int) bool { return s.Ranks == nil || slices.Contains(s.Ranks, rank) }

// HasAttempt reports whether the given process of the task with the given rank is selected.
func (s Selection) HasAttempt(rank, attempt int) bool {
	return len(s.Attempts) == 0 && !s.Last || slices.Contains(s.Attempts, attempt) || s.Last && attempt >= s.Latest[rank]
}

// Has reports whether a stream is selected. It is for [FollowOptions.Select].
func (s Selection) Has(st Stream) bool {
	leftOut := st.Stderr && s.OnlyStdout || !st.Stderr && s.OnlyStderr
	return !leftOut && s.HasTask(st.Rank) && s.HasAttempt(st.Rank, st.Attempt)
}

// From returns a function that returns the offset at which the selected part of a stream starts. It
// is for [FollowOptions.From].
func (s Selection) From(runDir string) func(Stream) int64 {
	since := func(Stream) int64 { return 0 }
	if !s.Since.IsZero() {
		since = Since(runDir, s.Since)
	}
	if s.Tail == 0 {
		return since
	}
	return func(st Stream) int64 {
		return max(since(st), startOfLastLines(filepath.Join(ProcessDir(runDir, st.Attempt, st.Rank), outputs[st.index()]), s.Tail))
	}
}

// startOfLastLines returns where the last n lines of a regular file start. An unfinished line at
// the end counts as one.
func startOfLastLines(path string, n int) int64 {
	f, info, err := openRegular(path, os.O_RDONLY, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	b := make([]byte, min(info.Size(), readSize))
	for end := info.Size(); end > 0; {
		from := max(0, end-int64(len(b)))
		read, err := f.ReadAt(b[:end-from], from)
		if err != nil {
			return 0 // the file was truncated
		}
		for i := read - 1; i >= 0; i-- {
			if at := from + int64(i) + 1; b[i] == '\n' && at < info.Size() {
				if n--; n == 0 {
					return at
				}
			}
		}
		end = from
	}
	return 0
}
