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

// software compares the software of the tasks that both runs have.
func (c *Comparison) software(a, b *Account) {
	left, right := a.softwareOf(), b.softwareOf()
	if len(left) == 0 || len(right) == 0 {
		if len(left) != len(right) {
			c.Unknown = append(c.Unknown, "the software of "+c.which(len(left) == 0, len(right) == 0)+" is not recorded, or cannot be read here")
		}
		return
	}
	// Many tasks share a record, so each pair of records is compared once.
	type pair struct{ a, b *Software }
	tasks := map[pair][]string{}
	var pairs []pair
	for _, t := range a.Status.Tasks {
		p := pair{left[t.Name], right[t.Name]}
		if p.a == nil || p.b == nil {
			continue
		}
		if tasks[p] == nil {
			pairs = append(pairs, p)
		}
		tasks[p] = append(tasks[p], t.Name)
	}
	packages := func(s *Software) values {
		all := values{}
		if s.Python != nil {
			for name, version := range s.Python.Packages {
				all[name] = new(version)
			}
		}
		return all
	}
	versions := func(s *Software) values {
		all := values{}
		for name, version := range s.Versions {
			all[name] = new(version)
		}
		if s.Python != nil {
			all["Python"], all["CUDA of torch"] = given(s.Python.Version), given(s.Python.CUDA)
		}
		return all
	}
	from := len(c.Differences)
	for _, p := range pairs {
		c.compare("packages", packages(p.a), packages(p.b), tasks[p])
	}
	for _, p := range pairs {
		c.compare("host software", versions(p.a), versions(p.b), tasks[p])
	}
	summed := c.Differences[from:]
	// torch explains more than others.
	first := slices.IndexFunc(summed, func(d Difference) bool { return d.What == "torch" })
	if first >= 0 {
		c.sum("torch", summed[first].A, summed[first].B)
	}
	for i, d := range summed {
		if i == mostSummed {
			c.Summary = append(c.Summary, fmt.Sprintf("%d more versions", len(summed)-i))
			break
		}
		if i != first {
			c.sum(d.What, d.A, d.B)
		}
	}
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
