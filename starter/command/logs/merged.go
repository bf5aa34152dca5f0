package logs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// longest is how many bytes of a line are kept.
const longest = 4 << 10

// Merged reads a run's current selected output, and returns the lines that contain a string, sorted
// by time. Identical lines from several ranks become one. It sets LastLine in tasks, which must
// contain all of the run's tasks. missing describes the output that cannot be read.
func Merged(ctx context.Context, a *cli.App, run *starter.Run, s *starter.Status, tasks []page.Task, selected files.Selection, search string) (lines []page.OutputLine, missing []string) {
	var said bytes.Buffer
	reader := NewReader(&cli.App{Out: io.Discard, Err: &said, Global: a.Global}, run, selected)
	c := newCollected(search)
	reader.Deliver = c.deliver
	if err := reader.ReadNow(ctx, s); err != nil {
		missing = append(missing, err.Error())
	}
	for text := range strings.Lines(said.String()) {
		missing = append(missing, strings.TrimPrefix(strings.TrimSpace(text), "clusterrun: "))
	}
	byRank := map[int]page.Task{}
	for _, t := range tasks {
		byRank[t.Rank] = t
	}
	lines = merged(c.byTime(s), byRank)
	for i, t := range tasks {
		tasks[i].LastLine = c.last[t.Rank]
	}
	return lines, missing
}

// line is a line of output.
type line struct {
	tasklog.Stream
	at   time.Time
	end  int64 // offset of its end in its file
	text []byte
	// after counts the later lines of its rank with an unknown time.
	after int
}

// collected collects lines that contain a string.
type collected struct {
	mu     sync.Mutex
	search string // in lower case, or empty for all
	lines  []*line
	open   map[tasklog.Stream]*line // unfinished lines
	last   map[int]string           // last lines by rank
}

func newCollected(search string) *collected {
	return &collected{search: strings.ToLower(search), open: map[tasklog.Stream]*line{}, last: map[int]string{}}
}

func (c *collected) deliver(chunk tasklog.Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := chunk.Offset
	for text := range bytes.Lines(chunk.Data) {
		offset += int64(len(text))
		l := c.open[chunk.Stream]
		if l == nil {
			l = &line{Stream: chunk.Stream}
			c.open[chunk.Stream] = l
		}
		l.text = append(l.text, text[:min(len(text), longest-len(l.text))]...)
		l.end = offset
		if text[len(text)-1] == '\n' {
			delete(c.open, chunk.Stream)
			c.add(l)
		}
	}
}

// add keeps a line if it matches the search. c.mu must be held.
func (c *collected) add(l *line) {
	l.text = bytes.TrimRight(l.text, "\r\n")
	if i := bytes.LastIndexByte(l.text, '\r'); i >= 0 {
		l.text = l.text[i+1:] // the last state of a progress bar
	}
	if text := strings.TrimSpace(string(l.text)); text != "" {
		c.last[l.Rank] = text
	}
	if len(l.text) > 0 && (c.search == "" || strings.Contains(strings.ToLower(string(l.text)), c.search)) {
		c.lines = append(c.lines, l)
	}
}

// byTime returns the lines sorted by the times that hosts recorded. Lines without a time, which are
// the latest lines and those from other hosts, come last. At the end is each rank's last line,
// preceded by each rank's second-to-last line, and so on.
func (c *collected) byTime(s *starter.Status) []*line {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.open {
		c.add(l)
	}
	c.open = nil
	times := map[int]func(tasklog.Stream, int64) time.Time{}
	for _, t := range s.Tasks {
		if dir, _, _, ok := tasklog.SplitProcessDir(t.LogDir); ok && filepath.IsAbs(dir) {
			times[t.Rank] = tasklog.WrittenBy(dir)
		}
	}
	for _, l := range c.lines {
		if by := times[l.Rank]; by != nil {
			l.at = by(l.Stream, l.end)
		}
	}
	after := map[int]int{}
	for _, l := range slices.Backward(c.lines) {
		if l.at.IsZero() {
			l.after = after[l.Rank]
			after[l.Rank]++
		}
	}
	slices.SortStableFunc(c.lines, func(a, b *line) int {
		switch {
		case a.at.IsZero() == b.at.IsZero():
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.after, a.after), cmp.Compare(a.Rank, b.Rank))
		case a.at.IsZero():
			return 1
		}
		return -1
	})
	return c.lines
}

// merged returns lines with their tasks. It combines lines of several ranks by the same rule that
// is used on a terminal.
func merged(lines []*line, tasks map[int]page.Task) (all []page.OutputLine) {
	ranks := map[int]bool{}
	for _, l := range lines {
		ranks[l.Rank] = true
	}
	rule := tasklog.NewFold(len(ranks))
	add := func(shown []tasklog.Alike) {
		for _, a := range shown {
			name, of := fmt.Sprintf("rank %d", a.Rank), stacktree.RanksOf(a.Ranks...)
			t, known := tasks[a.Rank]
			if known {
				name = t.Name
			}
			out := page.OutputLine{
				At: a.At(), Task: name, Rank: a.Rank, Ranks: of.String(), Count: len(a.Ranks),
				Stderr: a.Stderr, Text: string(bytes.TrimSuffix(a.Data, []byte("\n"))), Tone: page.Active,
			}
			if known && (t.Tone == page.Culprit || t.Tone == page.Muted) {
				out.Tone = t.Tone
			}
			all = append(all, out)
		}
	}
	for _, l := range lines {
		add(rule.Add(l.at, tasklog.Chunk{Stream: l.Stream, Data: append(l.text, '\n')}))
	}
	add(rule.Rest())
	return all
}
