package stacktree

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

const (
	// maxLines limits the classes that [Findings.Write] lists.
	maxLines = 10
	// maxPlaces and placeWidth limit the frames on a line.
	maxPlaces  = 6
	placeWidth = 90
)

// Short returns the part of the findings that [Findings.Write] would write, for results and
// histories.
func (f Findings) Short() Findings {
	f.LeftOut += max(0, len(f.Classes)-maxLines)
	f.Classes = slices.Clone(f.Classes[:min(len(f.Classes), maxLines)])
	for i, c := range f.Classes {
		f.Classes[i].Place = c.Place[:min(len(c.Place), maxPlaces+1)] // one more frame, so that the output still ends in an ellipsis
	}
	return f
}

// String returns the output of [Findings.Write] without the final newline.
func (f Findings) String() string {
	var b strings.Builder
	if err := f.Write(&b); err != nil {
		panic(err) // writing to a builder never fails
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Below returns the findings without their sentence, to be shown after it.
func (f Findings) Below() Findings {
	f.Sentence = ""
	return f
}

// Write writes at most ten classes, one per line, followed by the sentence and the result of a
// second capture.
func (f Findings) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 1, ' ', 0)
	shown := f.Classes[:min(len(f.Classes), maxLines)]
	for _, c := range shown {
		fmt.Fprintf(t, "%d of %d (%s)\t%s", c.Count, f.Total, c.Ranks.words(), c.Does())
		if place := c.places(); place != "" && c.known() {
			fmt.Fprintf(t, "\t %s", place)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if rest := f.LeftOut + len(f.Classes) - len(shown); rest > 0 {
		n := f.Total
		for _, c := range shown {
			n -= c.Count
		}
		if _, err := fmt.Fprintf(w, "%d of %d are in %d other places\n", n, f.Total, rest); err != nil {
			return err
		}
	}
	for _, line := range []string{f.Sentence, f.Motion.String()} {
		if line != "" {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// Does describes what the class's ranks are doing, such as "wait in all_reduce", or "sleeps in
// load_batch" for a single rank.
func (c Class) Does() string {
	if !c.known() {
		if c.Count > 1 {
			return plural(c.Missing)
		}
		return c.Missing
	}
	how := reasons[c.Wait.Reason]
	verb := how.verb
	if c.Count == 1 {
		verb += "s"
	}
	text := verb
	if how.rest != "" {
		text += " " + how.rest
	}
	where := c.where()
	if how.byName {
		where = c.Wait.Name
	}
	if where != "" {
		text += " in " + where
	}
	return text
}

// plural adapts a reason's leading verb to several ranks.
func plural(reason string) string {
	verb, rest, _ := strings.Cut(reason, " ")
	if many, ok := map[string]string{"has": "have", "is": "are", "does": "do", "differs": "differ", "ended": "ended"}[verb]; ok {
		verb = many
	}
	return strings.TrimSpace(verb + " " + rest)
}

// places returns the innermost frames, such as "train.py:11 load_batch ← train.py:8 step ← …".
func (c Class) places() string {
	var b strings.Builder
	for i, f := range c.Place {
		text := f.String()
		if i > 0 {
			text = " ← " + text
		}
		if i == maxPlaces || i > 0 && utf8.RuneCountInString(b.String()+text) > placeWidth {
			return b.String() + " ← …"
		}
		b.WriteString(text)
	}
	return b.String()
}

// DoesOf describes what a rank was doing and where in the program, such as " (sleeps in load_batch:
// train.py:11 ← …)". It is empty if this is unknown.
func (f Findings) DoesOf(rank int) string {
	for _, c := range f.Classes {
		if !c.Ranks.Has(rank) || !c.known() {
			continue
		}
		c.Count = 1
		text := " (" + c.Does()
		if place := c.places(); place != "" {
			text += ": " + place
		}
		return text + ")"
	}
	return ""
}
