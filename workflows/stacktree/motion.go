package stacktree

import (
	"fmt"
	"time"
)

// Motion is what a second look at the ranks tells. A rank that comes back to the same line, as those
// do that wait for a slow one in each step, seems not to have moved.
type Motion struct {
	// After is the time between the two looks, in seconds; 0 if there was one.
	After float64 `json:"after_seconds,omitempty"`
	// Moved are the ranks that were in other lines of the program, or waited for something else.
	// Of so many it is not known; they have ended, or had no stack.
	Moved   Ranks `json:"moved,omitempty"`
	Same    int   `json:"same,omitempty"`
	Unknown int   `json:"unknown,omitempty"`
}

// Compare returns which ranks of the first tree have moved in the second, so long after it.
func Compare(first, second Tree, after time.Duration) Motion {
	later := map[int]string{}
	for _, c := range second.classes() {
		for _, rank := range c.Ranks.First(c.Count) {
			if c.known() {
				later[rank] = c.key()
			}
		}
	}
	m := Motion{After: after.Seconds()}
	var moved []int
	for _, c := range first.classes() {
		for _, rank := range c.Ranks.First(c.Count) {
			switch key := later[rank]; {
			case !c.known() || key == "":
				m.Unknown++
			case key != c.key():
				moved = append(moved, rank)
			default:
				m.Same++
			}
		}
	}
	if m.Moved = RanksOf(moved...); len(moved)+m.Same == 0 {
		return Motion{}
	}
	return m
}

// Join returns what both tell, of different ranks.
func (m Motion) Join(o Motion) Motion {
	return Motion{After: max(m.After, o.After), Moved: m.Moved.Union(o.Moved), Same: m.Same + o.Same, Unknown: m.Unknown + o.Unknown}
}

// String returns a line for people: "1s later ranks 0-1 were in other lines: slow rather than
// stuck". It is empty if there was no second look.
func (m Motion) String() string {
	if m.After == 0 {
		return ""
	}
	text := fmt.Sprintf("%s later ", time.Duration(m.After*float64(time.Second)))
	moved := m.Moved.Len()
	switch {
	case moved == 0 && m.Same == 1:
		text += "it was in the same lines"
	case moved == 0:
		text += fmt.Sprintf("all %d were in the same lines", m.Same)
	case m.Same > 0:
		text += fmt.Sprintf("%s %s in other lines: slow rather than stuck; %d in the same", m.Moved.words(), number(m.Moved, "was", "were"), m.Same)
	case moved == 1:
		text += "it was in other lines: slow rather than stuck"
	default:
		text += fmt.Sprintf("all %d were in other lines: slow rather than stuck", moved)
	}
	if m.Unknown > 0 && moved+m.Same > 0 {
		text += fmt.Sprintf("; of %d it is not known", m.Unknown)
	}
	return text
}
