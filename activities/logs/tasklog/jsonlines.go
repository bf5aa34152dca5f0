package tasklog

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// WholeLines is an unlimited [FollowOptions.Hold]. Only whole lines are delivered, except lines
// longer than 64 KiB and an unfinished line at the end.
const WholeLines = time.Duration(math.MaxInt64 / 100)

// Line is a process's line as a JSON object.
type Line struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Stream  string `json:"stream"` // stdout or stderr
	Text    string `json:"line"`   // without the newline; invalid UTF-8 is replaced
	// Partial reports whether the line continues in the stream's next object, if there is one.
	Partial bool `json:"partial,omitempty"`
}

// JSONLines writes each line of many tasks as one [Line].
type JSONLines struct {
	task func(rank int) string

	mu   sync.Mutex
	w    *bufio.Writer
	json *json.Encoder
	// split contains the first bytes of incomplete characters.
	split   map[Stream][]byte
	failure error
}

// NewJSONLines returns a writer to w. task returns the name of the task with the given rank.
func NewJSONLines(w io.Writer, task func(rank int) string) *JSONLines {
	j := &JSONLines{task: task, w: bufio.NewWriterSize(w, 64<<10), split: map[Stream][]byte{}}
	j.json = json.NewEncoder(j.w)
	j.json.SetEscapeHTML(false)
	return j
}

// Deliver writes a chunk; it is a sink for a [Follower] with [WholeLines].
func (j *JSONLines) Deliver(chunk Chunk) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for data := chunk.Data; len(data) > 0; {
		var line []byte
		line, data = firstLine(data)
		if before := j.split[chunk.Stream]; before != nil {
			line = append(before, line...)
			delete(j.split, chunk.Stream)
		}
		if line[len(line)-1] == '\n' {
			j.write(chunk.Stream, line[:len(line)-1], false)
			continue
		}
		whole := wholeRunes(line)
		if whole < len(line) {
			j.split[chunk.Stream] = append([]byte(nil), line[whole:]...)
		}
		if whole > 0 {
			j.write(chunk.Stream, line[:whole], true)
		}
	}
	j.flush()
}

// Close writes the remaining lines, and returns the first write error.
func (j *JSONLines) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for s, rest := range j.split {
		j.write(s, rest, true)
	}
	clear(j.split)
	j.flush()
	return j.failure
}

// flush writes a chunk's lines immediately, because readers follow them live.
func (j *JSONLines) flush() {
	if j.failure == nil {
		j.failure = j.w.Flush()
	}
}

func (j *JSONLines) write(s Stream, text []byte, partial bool) {
	if j.failure != nil {
		return
	}
	name := strings.TrimSuffix(outputs[s.index()], ".log")
	// The encoder replaces invalid UTF-8.
	j.failure = j.json.Encode(Line{Task: j.task(s.Rank), Attempt: s.Attempt, Stream: name, Text: string(text), Partial: partial})
}

// wholeRunes returns the length of text without an incomplete character at its end.
func wholeRunes(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRune(text[i:]) {
				break
			}
			return i
		}
	}
	return len(text)
}
