package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/page"
)

const (
	// tailOfEach is the number of lines of each stream that are read, and tailToSearch that for
	// a search.
	tailOfEach, tailToSearch = 100, 5000
	// mostLines is the largest number of lines on a page, and longest of bytes of a line.
	mostLines, longest = 400, 4 << 10
	// mostRanks is the largest number of ranks whose output is read.
	mostRanks = 32
	// alike is the time within which equal lines of several ranks become one.
	alike = time.Second
)

// outputQuery is the selection of output in the query of a page.
type outputQuery struct{ page.OutputFilter }

func parseOutputQuery(v url.Values) outputQuery {
	return outputQuery{page.OutputFilter{Ranks: strings.TrimSpace(v.Get("ranks")), Search: v.Get("search"), Stderr: v.Get("stderr") != ""}}
}

func (q outputQuery) isSet() bool { return q.OutputFilter != page.OutputFilter{} }

// names returns the names of the chosen tasks. The filter has ranks, ranges of them, and names
// or types of tasks, separated by commas.
func (q outputQuery) names(s *starter.Status) (names []string, err error) {
	if q.Ranks == "" {
		return nil, nil
	}
	chosen := map[int]bool{}
	var others []string
	for part := range strings.SplitSeq(q.Ranks, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		if !isRange {
			to, err2 = from, err1
		}
		if err1 != nil || err2 != nil {
			others = append(others, part)
			continue
		}
		found := false
		for _, t := range s.Tasks {
			if t.Rank >= int(from) && t.Rank <= int(to) {
				chosen[t.Rank], found = true, true
			}
		}
		if !found {
			return nil, cli.Usagef("ranks %q: the run has no such rank; it has 0 to %d", part, len(s.Tasks)-1)
		}
	}
	named, err := logs.RanksOf(s, others)
	if err != nil {
		return nil, err
	}
	for _, t := range s.Tasks {
		if chosen[t.Rank] || named[t.Rank] {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// outputOf returns the part of the output of a run that a page shows. It sets the last lines of
// tasks, which are all of its tasks, as far as it has read them.
func (s *Server) outputOf(ctx context.Context, run *starter.Run, status *starter.Status, tasks page.Tasks, q outputQuery) (out page.Output) {
	out.Filter, out.LogURL = q.OutputFilter, runURL(run.ID)+"/log"
	if run.ExecutionID != "" {
		out.LogURL += "?execution=" + url.QueryEscape(run.ExecutionID)
	}
	names, err := q.names(status)
	if err != nil {
		out.Missing = append(out.Missing, err.Error())
		return out
	}
	all := len(tasks.All)
	if names == nil && all > mostRanks {
		for _, t := range worst(tasks.All)[:mostRanks] {
			names = append(names, t.Name)
		}
		out.Cut = fmt.Sprintf("This is the output of the %d tasks that need a look first, of %d; choose ranks to see others.", mostRanks, all)
	}
	if len(names) > mostRanks {
		out.Cut = fmt.Sprintf("This is the output of the first %d of %d chosen tasks.", mostRanks, len(names))
		names = names[:mostRanks]
	}
	selected := logs.Selection{Names: names, Selection: tasklog.Selection{Tail: tailOfEach, Last: true, OnlyStderr: q.Stderr}}
	if q.Search != "" {
		selected.Tail = tailToSearch
	}
	var said bytes.Buffer
	reader := logs.NewReader(&cli.App{Out: io.Discard, Err: &said, Global: s.App.Global}, run, selected)
	c := newCollected(q.Search)
	reader.Deliver = c.deliver
	if err := reader.ReadNow(ctx, status); err != nil {
		out.Missing = append(out.Missing, err.Error())
	}
	for text := range strings.Lines(said.String()) {
		out.Missing = append(out.Missing, strings.TrimPrefix(strings.TrimSpace(text), "clusterrun: "))
	}
	byRank := map[int]page.Task{}
	for _, t := range tasks.All {
		byRank[t.Rank] = t
	}
	out.Lines = merged(c.byTime(status), byRank)
	if more := len(out.Lines) - mostLines; more > 0 {
		out.Lines = out.Lines[more:]
		out.Cut = strings.TrimSpace(fmt.Sprintf("%s Only the last %d lines are shown.", out.Cut, mostLines))
	}
	for i, t := range tasks.All {
		tasks.All[i].LastLine = c.last[t.Rank]
	}
	return out
}

// worst returns tasks, those that need a look first.
func worst(tasks []page.Task) []page.Task {
	return slices.SortedStableFunc(slices.Values(tasks), func(a, b page.Task) int {
		return cmp.Or(cmp.Compare(a.Tone, b.Tone), cmp.Compare(b.Slow, a.Slow))
	})
}

// line is a line of output.
type line struct {
	tasklog.Stream
	at   time.Time
	end  int64 // offset of its end in its file
	text []byte
	nth  int // in the order of arrival
}

// collected collects lines that contain a text.
type collected struct {
	mu     sync.Mutex
	search string // in lower case; empty for all
	lines  []*line
	open   map[tasklog.Stream]*line // lines without their end
	last   map[int]string           // last lines by rank
	n      int
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
			c.n++
			l = &line{Stream: chunk.Stream, nth: c.n}
			c.open[chunk.Stream] = l
		}
		whole := text[len(text)-1] == '\n'
		l.text = append(l.text, text[:min(len(text), longest-len(l.text))]...)
		l.end = offset
		if whole {
			delete(c.open, chunk.Stream)
			c.add(l)
		}
	}
}

// add keeps a line if it is searched for. c.mu must be held.
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

// byTime returns the lines in the order of time, as far as it is known.
func (c *collected) byTime(s *starter.Status) []*line {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.open {
		c.add(l)
	}
	c.open = nil
	at := map[int]func(tasklog.Stream, int64) time.Time{}
	for _, t := range s.Tasks {
		if dir, _, _, ok := tasklog.SplitProcessDir(t.LogDir); ok && filepath.IsAbs(dir) {
			at[t.Rank] = tasklog.WrittenBy(dir)
		}
	}
	for _, l := range c.lines {
		if written := at[l.Rank]; written != nil {
			l.at = written(l.Stream, l.end)
		}
	}
	slices.SortStableFunc(c.lines, func(a, b *line) int {
		// Lines without a time are the latest, which the host has not noted yet.
		if a.at.IsZero() != b.at.IsZero() {
			if a.at.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.nth, b.nth))
	})
	return c.lines
}

// merged returns lines with their tasks. Equal lines of several ranks within a second are one.
func merged(lines []*line, tasks map[int]page.Task) (all []page.OutputLine) {
	type key struct {
		text   string
		stderr bool
	}
	type group struct {
		index int
		at    time.Time
		ranks map[int]bool
	}
	latest := map[key]*group{}
	ranks := map[int][]int{} // by index
	for _, l := range lines {
		k := key{string(l.text), l.Stderr}
		if g := latest[k]; g != nil && !g.ranks[l.Rank] && l.at.Sub(g.at) < alike {
			g.ranks[l.Rank] = true
			all[g.index].Count++
			ranks[g.index] = append(ranks[g.index], l.Rank)
			continue
		}
		t := tasks[l.Rank]
		out := page.OutputLine{At: l.at, Task: cmp.Or(t.Name, fmt.Sprintf("rank %d", l.Rank)), Rank: l.Rank, Count: 1, Stderr: l.Stderr, Text: k.text, Tone: page.Active}
		if t.Tone == page.Culprit || t.Tone == page.Muted {
			out.Tone = t.Tone
		}
		latest[k] = &group{len(all), l.at, map[int]bool{l.Rank: true}}
		ranks[len(all)] = []int{l.Rank}
		all = append(all, out)
	}
	for i := range all {
		all[i].Ranks = rangesOf(ranks[i])
	}
	return all
}

// rangesOf returns ranks as in 0-3,8.
func rangesOf(ranks []int) string {
	slices.Sort(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		part := strconv.Itoa(ranks[i])
		if j > i {
			part += "-" + strconv.Itoa(ranks[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

// download sends the output of a run, or of one task, as a file.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	run, err := s.run(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	status, err := run.Status(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	name := run.ID
	selected := logs.Selection{}
	if task := r.URL.Query().Get("task"); task != "" {
		selected.Names = []string{task}
		if _, err := logs.RanksOf(status, selected.Names); err != nil {
			s.fail(w, r, err)
			return
		}
		name += "-" + task
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.log"`, fileName(name)))
	// What cannot be read is named in the file: nobody looks at the log of the server.
	reader := logs.NewReader(&cli.App{Out: w, Err: w, Global: s.App.Global}, run, selected)
	if err := reader.Show(r.Context()); err != nil && r.Context().Err() == nil {
		fmt.Fprintf(w, "clusterrun: %s\n", err)
	}
}

// fileName returns a name without characters that mean something in a header or a path.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < '~' && !strings.ContainsRune(`"\/:*?<>|;%`, r) {
			return r
		}
		return '_'
	}, text)
}
