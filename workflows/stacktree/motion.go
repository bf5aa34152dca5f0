package stacktree

import (
	"fmt"
	"strings"
	"time"
)

// Motion is the result of capturing the ranks' stacks a second time. A rank that returns to the
// same line in each step, for example because it waits for a slow rank, appears not to have moved.
type Motion struct {
	// After is the time between the two captures, in seconds, or 0 if there was no second one.
	After float64 `json:"after_seconds,omitempty"`
	// Moved are the ranks that were in different program lines, or in a different collective. Same
	// counts the ranks that were not. The motion of Unknown ranks is unknown because they ended, or
	// because their stack is missing or does not contain program code.
	Moved   Ranks `json:"moved,omitempty"`
	Same    int   `json:"same,omitempty"`
	Unknown int   `json:"unknown,omitempty"`
}

// Compare returns how the ranks moved between two trees. after is the time between the captures.
func Compare(first, second Tree, after time.Duration) Motion {
	later := map[int]*Class{}
	for _, c := range second.classes() {
		for _, rank := range c.Ranks.First(c.Count) {
			later[rank] = c
		}
	}
	m := Motion{After: after.Seconds()}
	var moved []int
	for _, c := range first.classes() {
		for _, rank := range c.Ranks.First(c.Count) {
			switch l := later[rank]; {
			case l == nil || !c.known() || !l.known():
				m.Unknown++
			case c.at() == l.at():
				m.Same++
			case c.ownCode() && l.ownCode():
				moved = append(moved, rank)
			default:
				m.Unknown++
			}
		}
	}
	if m.Moved = RanksOf(moved...); len(moved)+m.Same == 0 {
		return Motion{}
	}
	return m
}

// at returns where the ranks are, as their lines and the collective or similar call. It ignores
// what they are waiting for, because a thread may be observed between two system calls.
func (c *Class) at() string {
	var b strings.Builder
	if reasons[c.Wait.Reason].byName {
		b.WriteString(c.Wait.Name)
	}
	for _, f := range c.Place {
		b.WriteString("\x00" + f.File + "\x00" + f.String())
	}
	return b.String()
}

// ownCode reports whether any frame is in user code. Library frames do not show motion, because
// event loops repeat.
func (c *Class) ownCode() bool { return len(c.Place) > 0 && c.Place[0].userCode() }

// Join combines results for different ranks.
func (m Motion) Join(o Motion) Motion {
	return Motion{After: max(m.After, o.After), Moved: m.Moved.Union(o.Moved), Same: m.Same + o.Same, Unknown: m.Unknown + o.Unknown}
}

// String returns a line such as "1s later ranks 0-1 were in other lines: slow rather than stuck",
// or "" without a second look.
func (m Motion) String() string {
	if m.After == 0 {
		return ""
	}
	text := fmt.Sprintf("%s later ", time.Duration(m.After*float64(time.Second)))
	moved := m.Moved.Len()
	switch {
	case moved == 0 && m.Same+m.Unknown == 1:
		text += "it was at the same lines"
	case moved == 0 && m.Unknown == 0:
		text += fmt.Sprintf("all %d were at the same lines", m.Same)
	case moved == 0:
		text += fmt.Sprintf("%d at the same lines", m.Same)
	case m.Same+m.Unknown > 0:
		text += fmt.Sprintf("%s %s in other lines: slow rather than stuck", m.Moved.words(), number(m.Moved, "was", "were"))
		if m.Same > 0 {
			text += fmt.Sprintf("; %d in the same", m.Same)
		}
	case moved == 1:
		text += "it was in other lines: slow rather than stuck"
	default:
		text += fmt.Sprintf("all %d were in other lines: slow rather than stuck", moved)
	}
	if m.Unknown > 0 {
		text += fmt.Sprintf("; unknown for %d", m.Unknown)
	}
	return text
}
