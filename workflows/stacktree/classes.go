package stacktree

import (
	"cmp"
	"slices"
	"strings"
)

// Class is a set of ranks that are doing the same thing.
type Class struct {
	Ranks Ranks `json:"ranks"`
	Count int   `json:"count"`
	// Wait describes what the ranks are waiting for. Its reason is empty if this is unknown.
	Wait Wait `json:"wait,omitzero"`
	// Place is the ranks' place in the user's program, innermost frame first.
	Place []Frame `json:"place,omitempty"`
	// Missing is the reason why the stacks are missing, as a phrase that follows the ranks. If
	// Ended is set, the ranks' processes have exited.
	Missing string `json:"missing,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	// Outlier reports whether [Findings.Sentence] names the ranks.
	Outlier bool `json:"outlier,omitempty"`
}

// waiting reports whether the ranks are known to be waiting for other ranks.
func (c *Class) waiting() bool { return c.known() && c.Wait.Reason.peers() }

func (c *Class) known() bool { return c.Missing == "" && !c.Ended }

// seen reports whether the stacks contain frames of the program. If they do not, it is unknown
// whether the ranks are waiting for other ranks.
func (c *Class) seen() bool {
	return slices.ContainsFunc(c.Place, func(f Frame) bool { return f.Kind != Program })
}

// Waiting returns the ranks that are known to be waiting for other ranks.
func (t Tree) Waiting() Ranks {
	waiting := Ranks{}
	for _, c := range t.classes() {
		if c.waiting() {
			waiting = waiting.Union(c.Ranks)
		}
	}
	return waiting
}

// classes returns a tree's classes, largest first.
func (t Tree) classes() []*Class {
	byKey := map[string]*Class{}
	var all []*Class
	for _, l := range t.leaves() {
		c := classOf(l.Stack)
		key := c.key()
		known := byKey[key]
		if known == nil {
			known = c
			byKey[key] = c
			all = append(all, c)
		}
		known.Ranks = known.Ranks.Union(l.Ranks)
		known.Count = known.Ranks.Len()
	}
	slices.SortFunc(all, func(a, b *Class) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Ranks[0].First, b.Ranks[0].First))
	})
	return all
}

func classOf(s Stack) *Class {
	switch f := s[len(s)-1]; f.Kind {
	case Unknown:
		return &Class{Missing: cmp.Or(f.Function, "has no stack")}
	case Ended:
		return &Class{Missing: cmp.Or(f.Function, "has ended"), Ended: true}
	}
	wait, at := waitOf(s)
	c := &Class{Wait: wait}
	if at < 0 {
		at = len(s)
	}
	for i, f := range slices.Backward(s) {
		if i < at && f.userCode() {
			c.Place = append(c.Place, f)
		}
	}
	if len(c.Place) > 0 {
		return c
	}
	// Without frames in user code, show the wait's caller.
	for _, f := range slices.Backward(s[:at]) {
		if f.Kind != Kernel {
			c.Place = append(c.Place, f)
		}
	}
	return c
}

func (c *Class) key() string {
	var b strings.Builder
	b.WriteString(c.Missing + "\x00" + string(c.Wait.Reason))
	if reasons[c.Wait.Reason].byName {
		b.WriteString("\x00" + c.Wait.Name)
	}
	for _, f := range c.Place {
		b.WriteString("\x00" + string(f.Kind) + "\x00" + f.File + "\x00" + f.Function + "\x00" + f.String())
	}
	return b.String()
}

// isIn reports whether the ranks are in a user function, or in something that the function calls,
// such as a list comprehension.
func (c *Class) isIn(function string) bool {
	return slices.ContainsFunc(c.Place, func(f Frame) bool { return f.Function == function })
}

// where returns the user function that the ranks are in.
func (c *Class) where() string {
	if len(c.Place) == 0 {
		return ""
	}
	if f := c.Place[0]; f.Kind == Program {
		return f.String()
	}
	return c.Place[0].Function
}
