package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter/source"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// source compares the source code of two runs.
func (c *Comparison) source(a, b *source.Source) {
	if a == nil || b == nil {
		if a != b {
			c.Unknown = append(c.Unknown, "the source code of "+c.which(a == nil, b == nil)+" is not recorded: it was started outside of a git work tree, by another program, or without record_source")
		}
		return
	}
	for _, s := range []*source.Source{a, b} {
		if s.Note != "" {
			c.Unknown = append(c.Unknown, "the source code of "+map[bool]string{true: c.A, false: c.B}[s == a]+": "+s.Note)
		}
	}
	revision := func(s *source.Source) values { return values{"commit": given(s.Revision())} }
	c.compare("source", revision(a), revision(b), nil)
	if a.Commit != b.Commit {
		c.sum("commit", given(shortCommit(a)), given(shortCommit(b)))
	}
	from := len(c.Differences)
	files := func(s *source.Source) values {
		all := values{}
		for _, f := range s.Files {
			all[f.Name] = new(f.Difference())
		}
		return all
	}
	c.compare("source", files(a), files(b), nil)
	for i, d := range c.Differences[from:] {
		if i == mostSummed {
			c.Summary = append(c.Summary, fmt.Sprintf("%d more files", len(c.Differences)-from-i))
			break
		}
		c.Summary = append(c.Summary, d.What)
	}
}

func shortCommit(s *source.Source) string {
	revision, _, _ := strings.Cut(s.Revision(), " (")
	return revision
}

// mostSummed is the number of differences of a kind that a summary has.
const mostSummed = 6

// sum adds a difference to the summary.
func (c *Comparison) sum(what string, a, b *string) {
	text := func(v *string) string {
		const most = 60
		if v == nil {
			return "none"
		}
		line, _, _ := strings.Cut(*v, "\n")
		return shorten.Text(line, most)
	}
	c.Summary = append(c.Summary, what+" "+text(a)+" → "+text(b))
}

// summarize adds the differences in the spec, the environment and the hosts to the summary.
func (c *Comparison) summarize(a, b *Account) {
	n := 0
	said := map[string]bool{}
	for _, d := range c.Differences {
		name := strings.TrimPrefix(d.What, "env.") // a variable of the spec is in the environment, too
		if d.In != "spec" && d.In != "environment" || said[name] {
			continue
		}
		said[name] = true
		if n++; n > mostSummed {
			c.Summary = append(c.Summary, "and more of the spec and the environment")
			break
		}
		c.sum(d.What, d.A, d.B)
	}
	hosts := func(a *Account) *string {
		names := map[string]bool{}
		for _, t := range a.Status.Tasks {
			if t.Host != "" {
				names[t.Host] = true
			}
		}
		return given(shorten.List(slices.Sorted(maps.Keys(names)), mostSummed))
	}
	if left, right := hosts(a), hosts(b); orNone(left) != orNone(right) {
		c.sum("host", left, right)
	}
}
