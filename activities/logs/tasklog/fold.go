package tasklog

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

const (
	// foldPause limits how long a line waits for its next duplicate, and foldMost how long it waits
	// in total.
	foldPause = 200 * time.Millisecond
	foldMost  = time.Second
	// maxFoldBytes limits the waiting lines, in bytes.
	maxFoldBytes = 4 << 20
)

// Alike is an identical line that several tasks wrote, or a chunk that is shown as it arrived.
type Alike struct {
	Chunk
	Ranks []int

	first, last time.Time
}

// At returns when the first of the lines arrived.
func (a Alike) At() time.Time { return a.first }

// Prefix returns the start of a line that several tasks wrote.
func (a Alike) Prefix() string {
	ranks := stacktree.RanksOf(a.Ranks...)
	return fmt.Sprintf("[× %d, ranks %s] ", ranks.Len(), ranks)
}

// Fold merges identical lines that several tasks write in succession. Each task's lines remain in
// order, and no line waits for more than a second. Lines with carriage returns and pieces of lines
// are not folded. Fold does not read a clock.
type Fold struct {
	// tasks is the number of tasks. A line that all of them wrote stops waiting.
	tasks int
	// waiting contains the waiting lines, in the order in which they are shown. shown is the number
	// of lines before them, and last the number of each task's last line, from 1.
	waiting []*Alike
	shown   int
	last    map[int]int
	// numbers contains the numbers of the waiting lines by their text.
	numbers map[foldKey][]int
	bytes   int
	// open contains the streams with an unfinished line.
	open map[Stream]bool
}

// foldKey contains the properties that lines must share to be merged.
type foldKey struct {
	text   string
	stderr bool
}

// NewFold returns a Fold for a run with the given number of tasks.
func NewFold(tasks int) *Fold {
	return &Fold{tasks: tasks, last: map[int]int{}, numbers: map[foldKey][]int{}, open: map[Stream]bool{}}
}

// Add adds a chunk that arrived at the given time, and returns the lines to show now.
func (f *Fold) Add(at time.Time, c Chunk) []Alike {
	show := f.Due(at)
	for data := c.Data; len(data) > 0; {
		line, rest := firstLine(data)
		piece := Chunk{Stream: c.Stream, Data: line, Start: c.Start && len(data) == len(c.Data), Offset: c.Offset + int64(len(c.Data)-len(data))}
		data = rest
		switch text, whole := bytes.CutSuffix(line, []byte("\n")); {
		case whole && !f.open[c.Stream] && bytes.IndexByte(text, '\r') < 0 && f.tasks > 1:
			f.join(at, piece)
		case !whole && bytes.IndexByte(text, '\r') >= 0:
			// A progress bar is shown below the lines.
			f.open[c.Stream] = true
			show = append(show, Alike{Chunk: piece, Ranks: []int{c.Rank}, first: at})
		default:
			show = append(show, f.take(f.last[c.Rank]-f.shown)...)
			show = append(show, Alike{Chunk: piece, Ranks: []int{c.Rank}, first: at})
			if f.open[c.Stream] = !whole; whole {
				delete(f.open, c.Stream)
			}
		}
	}
	show = append(show, f.Due(at)...)
	if f.bytes > maxFoldBytes {
		show = append(show, f.Rest()...)
	}
	return show
}

// join adds a line to the first waiting line that is identical and does not precede another line of
// the same task. If there is none, it queues the line.
func (f *Fold) join(at time.Time, c Chunk) {
	key := foldKey{string(c.Data), c.Stderr}
	same := f.numbers[key]
	if i, _ := slices.BinarySearch(same, f.last[c.Rank]+1); i < len(same) {
		w := f.waiting[same[i]-f.shown-1]
		w.Ranks, w.last = append(w.Ranks, c.Rank), at
		f.last[c.Rank] = same[i]
		return
	}
	c.Data = bytes.Clone(c.Data)
	f.bytes += len(c.Data)
	f.waiting = append(f.waiting, &Alike{Chunk: c, Ranks: []int{c.Rank}, first: at, last: at})
	f.last[c.Rank] = f.shown + len(f.waiting)
	f.numbers[key] = append(same, f.last[c.Rank])
}

// due returns when to show a waiting line.
func (f *Fold) due(w *Alike) time.Time {
	switch pause, most := w.last.Add(foldPause), w.first.Add(foldMost); {
	case len(w.Ranks) == f.tasks:
		return w.first
	case pause.Before(most):
		return pause
	default:
		return most
	}
}

// Next returns when to show the next line, if any is waiting.
func (f *Fold) Next() (at time.Time, ok bool) {
	if len(f.waiting) == 0 {
		return at, false
	}
	return f.due(f.waiting[0]), true
}

// Due returns the lines to show at the given time.
func (f *Fold) Due(at time.Time) []Alike {
	n := 0
	for n < len(f.waiting) && !f.due(f.waiting[n]).After(at) {
		n++
	}
	return f.take(n)
}

// Rest returns all waiting lines.
func (f *Fold) Rest() []Alike { return f.take(len(f.waiting)) }

// take removes and returns the first n waiting lines.
func (f *Fold) take(n int) []Alike {
	if n <= 0 {
		return nil
	}
	taken := make([]Alike, n)
	for i, w := range f.waiting[:n] {
		taken[i] = *w
		f.bytes -= len(w.Data)
		key := foldKey{string(w.Data), w.Stderr}
		if f.numbers[key] = f.numbers[key][1:]; len(f.numbers[key]) == 0 {
			delete(f.numbers, key)
		}
	}
	f.waiting = f.waiting[n:]
	f.shown += n
	return taken
}
