package runrecord

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Comparison holds the differences between two runs.
type Comparison struct {
	A string `json:"a"`
	B string `json:"b"`
	// Differences are ordered from causes to effects, with spec and source code first and
	// results last.
	Differences []Difference `json:"differences"`
	// Durations always differ, and do not count as a difference.
	Durations []Durations `json:"durations"`
	// Unknown lists what cannot be compared, and why.
	Unknown []string `json:"unknown,omitempty"`

	known map[difference]int // of tasks, to their indices in Differences
}

// difference is a difference that several tasks may share.
type difference struct{ in, what, a, b string }

// Difference is a value that differs. A missing value is nil.
type Difference struct {
	// In is spec, source, placement, causes, restarts or result.
	In   string `json:"in"`
	What string `json:"what"`
	// Tasks are the tasks with this difference.
	Tasks []string `json:"tasks,omitempty"`
	A     *string  `json:"a"`
	B     *string  `json:"b"`
}

// Durations holds one phase's durations, in seconds. A duration is nil if its run has not
// reached the phase.
type Durations struct {
	Phase string   `json:"phase"`
	A     *float64 `json:"a"`
	B     *float64 `json:"b"`
}

// Compare returns the differences between two runs.
func Compare(a, b *Account) *Comparison {
	c := &Comparison{A: a.Status.RunID, B: b.Status.RunID, Differences: []Difference{}, Durations: []Durations{}, known: map[difference]int{}}
	if a.Spec == nil || b.Spec == nil {
		for _, of := range []*Account{a, b} {
			if of.Spec == nil {
				c.Unknown = append(c.Unknown, fmt.Sprintf("cannot read the spec of %s: %s", of.Status.RunID, of.WhyNoSpec()))
			}
		}
	} else {
		c.compare("spec", fields(a.Spec), fields(b.Spec), nil)
	}
	c.source(a.Source, b.Source)
	c.perTask(a.Status.Tasks, b.Status.Tasks)
	c.compare("result", results(a.Status), results(b.Status), nil)
	c.durations(a.Phases, b.Phases)
	return c
}

// source compares the source code of two runs.
func (c *Comparison) source(a, b *sourcecode.Source) {
	for i, s := range []*sourcecode.Source{a, b} {
		id := []string{c.A, c.B}[i]
		switch {
		case s == nil && a != b:
			c.Unknown = append(c.Unknown, "the source code of "+id+" was not recorded: it was started outside a git work tree, by another program, or without record_source")
		case s != nil && s.Note != "":
			c.Unknown = append(c.Unknown, "the source code of "+id+": "+s.Note)
		}
	}
	if a == nil || b == nil {
		return
	}
	files := func(s *sourcecode.Source) values {
		all := values{"commit": given(s.Revision())}
		for _, f := range s.Files {
			all[f.Name] = new(f.Difference())
		}
		return all
	}
	c.compare("source", files(a), files(b), nil)
}

// compare records the values that differ, by name.
func (c *Comparison) compare(in string, a, b values, tasks []string) {
	for _, name := range slices.Sorted(maps.Keys(union(a, b))) {
		left, right := a[name], b[name]
		if left == nil && right == nil || left != nil && right != nil && *left == *right {
			continue
		}
		key := difference{in, name, orNone(left), orNone(right)}
		at, ok := c.known[key]
		if !ok {
			at = len(c.Differences)
			c.known[key] = at
			c.Differences = append(c.Differences, Difference{In: in, What: name, A: left, B: right})
		}
		c.Differences[at].Tasks = append(c.Differences[at].Tasks, tasks...)
	}
}

// values maps names to strings. A missing value is nil.
type values map[string]*string

func union(a, b values) values {
	all := values{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func orNone(value *string) string {
	if value == nil {
		return "\x00"
	}
	return *value
}

// perTask compares the tasks that both runs have.
func (c *Comparison) perTask(a, b []starter.TaskStatus) {
	for _, k := range []struct {
		in string
		of func(starter.TaskStatus) values
	}{
		{"placement", func(t starter.TaskStatus) values { return values{"host": given(t.Host)} }},
		{"causes", ending},
		{"restarts", func(t starter.TaskStatus) values { return values{"restarts": new(strconv.Itoa(t.Restarts))} }},
	} {
		for _, t := range a {
			at := slices.IndexFunc(b, func(other starter.TaskStatus) bool { return other.Name == t.Name })
			if at < 0 {
				continue // a difference between the specs
			}
			c.compare(k.in, k.of(t), k.of(b[at]), []string{t.Name})
		}
	}
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ending returns a task's state, or how it ended.
func ending(t starter.TaskStatus) values {
	if t.Exit == nil {
		return values{"state": given(string(t.State))}
	}
	return values{
		"exit":  new(cmp.Or(t.Exit.Signal, strconv.Itoa(t.Exit.ExitCode))),
		"cause": given(string(t.Exit.Cause)),
	}
}

func results(s *starter.Status) values {
	if s.Result == nil {
		return values{"verdict": given(string(s.Verdict)), "state": given(string(s.State))}
	}
	r := s.Result
	out := values{"verdict": given(string(r.Verdict)), "exit code": new(strconv.Itoa(r.ExitCode)), "generations": new(strconv.Itoa(r.Generation + 1))}
	if f := r.FirstFailure; f != nil {
		out["first failure"] = new(fmt.Sprintf("%s: %s", f.Task, f.Cause))
	}
	for _, t := range r.Tasks {
		if len(t.Value) > 0 {
			out["value of "+t.Name] = new(spec.FormatValue(t.Value))
		}
	}
	return out
}

func (c *Comparison) durations(a, b []Phase) {
	find := func(phases []Phase, name string) *float64 {
		at := slices.IndexFunc(phases, func(p Phase) bool { return p.Name == name })
		if at < 0 {
			return nil
		}
		return &phases[at].Seconds
	}
	for _, p := range longer(a, b) {
		c.Durations = append(c.Durations, Durations{Phase: p.Name, A: find(a, p.Name), B: find(b, p.Name)})
	}
}

func longer(a, b []Phase) []Phase {
	if len(a) < len(b) {
		return b
	}
	return a
}
