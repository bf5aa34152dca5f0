package record

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Comparison has the differences between two runs.
type Comparison struct {
	A string `json:"a"`
	B string `json:"b"`
	// Summary lists the main differences of the runs, each in a few words.
	Summary []string `json:"summary,omitempty"`
	// Differences are ordered from causes to effects: of the spec, the environment and the
	// programs first, and of the results last.
	Differences []Difference `json:"differences"`
	// Durations always differ, and do not count as a difference.
	Durations []Durations `json:"durations"`
	// Unknown lists what cannot be compared, and why.
	Unknown []string `json:"unknown,omitempty"`

	known map[difference]int // of tasks, to their indices in Differences
}

// difference is a difference that several tasks may share.
type difference struct{ in, what, a, b string }

// Difference is a value that differs. A value that does not exist is nil.
type Difference struct {
	// In is spec, source, environment, files, versions, placement, causes, restarts, last lines or
	// result.
	In   string `json:"in"`
	What string `json:"what"`
	// Tasks are the tasks with this difference.
	Tasks []string `json:"tasks,omitempty"`
	A     *string  `json:"a"`
	B     *string  `json:"b"`
}

// Durations are the durations of one phase, in seconds. One is nil if its run has not reached
// the phase.
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
				c.Unknown = append(c.Unknown, fmt.Sprintf("the spec of %s cannot be read: %s", of.Status.RunID, of.WhyNoSpec()))
			}
		}
	} else {
		c.compare("spec", fields(a.Spec), fields(b.Spec), nil)
	}
	c.source(a.Source, b.Source)
	c.perTask(a, b)
	c.summarize(a, b)
	c.compare("result", results(a.Status), results(b.Status), nil)
	c.durations(a.Phases, b.Phases)
	return c
}

func (c *Comparison) which(a, b bool) string {
	switch {
	case a && b:
		return "both runs"
	case a:
		return c.A
	}
	return c.B
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

// values are texts by name. A text that does not exist is nil.
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
func (c *Comparison) perTask(a, b *Account) {
	type side struct {
		status starter.TaskStatus
		Task
	}
	sides := func(a *Account) map[string]side {
		out := map[string]side{}
		for i, t := range a.Status.Tasks {
			s := side{status: t}
			if i < len(a.Tasks) && a.Tasks[i].Name == t.Name {
				s.Task = a.Tasks[i]
			}
			out[t.Name] = s
		}
		return out
	}
	left, right := sides(a), sides(b)
	hide := [2]*strings.Replacer{ownNames(a.Status), ownNames(b.Status)}
	kinds := []struct {
		in string
		of func(s side, own *strings.Replacer) values
	}{
		{"environment", func(s side, own *strings.Replacer) values { return environment(s.Start, own) }},
		{"files", func(s side, _ *strings.Replacer) values { return files(s.Start) }},
		{"versions", func(s side, _ *strings.Replacer) values {
			if s.Start == nil {
				return nil
			}
			return values{"clusterrun": &s.Start.Version}
		}},
		{"placement", func(s side, _ *strings.Replacer) values { return values{"host": given(s.status.Host)} }},
		{"causes", func(s side, own *strings.Replacer) values { return ending(s.status, own) }},
		{"restarts", func(s side, _ *strings.Replacer) values {
			return values{"restarts": new(strconv.Itoa(s.status.Restarts))}
		}},
		{"last lines", func(s side, own *strings.Replacer) values { return values{"stdout": given(own.Replace(s.LastLines))} }},
	}
	var silent [2]bool
	for _, k := range kinds {
		for _, t := range a.Status.Tasks {
			l := left[t.Name]
			r, both := right[t.Name]
			if !both {
				continue // a difference of the specs
			}
			if (k.in == "environment" || k.in == "files" || k.in == "versions") && (l.Start == nil || r.Start == nil) {
				silent[0], silent[1] = silent[0] || l.Start == nil, silent[1] || r.Start == nil
				continue
			}
			c.compare(k.in, k.of(l, hide[0]), k.of(r, hide[1]), []string{t.Name})
		}
	}
	if silent[0] || silent[1] {
		c.Unknown = append(c.Unknown, "how processes of "+c.which(silent[0], silent[1])+
			" were started cannot be read here: their environment, programs and versions are left out (their logs are on another host, were removed, or are of an older clusterrun)")
	}
}

// tellingID is the length from which an ID does not occur in a text by chance.
const tellingID = 6

// ownNames returns a replacer for the parts of a text that differ in each run.
func ownNames(s *starter.Status) *strings.Replacer {
	pairs := []string{"/" + s.RunID + "/", "/RUN/"} // in a path, any ID is telling
	for _, p := range [][2]string{{s.ExecutionID, "EXECUTION"}, {s.ExecutionID[strings.LastIndexByte(s.ExecutionID, '-')+1:], "EXECUTION"}, {s.RunID, "RUN"}} {
		if len(p[0]) >= tellingID {
			pairs = append(pairs, p[0], p[1])
		}
	}
	return strings.NewReplacer(pairs...)
}

// fleeting are variables that differ in each run: its ID, leased ports, and variables of the
// shell. CLUSTERRUN_* follow from the spec and the placement.
var fleeting = []string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "TF_CONFIG", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "_", "SHLVL", "OLDPWD"}

// environment returns the variables of a process. Inherited values, and values that may be
// secrets, are not known, so they cannot be compared.
func environment(s *tasklog.Start, own *strings.Replacer) values {
	out := values{}
	for _, name := range s.Inherited {
		out[name] = new("(inherited)")
	}
	for name, value := range s.Set {
		switch {
		case value == nil:
			out[name] = new("(not kept: perhaps a secret)")
		case name == "PYTHONPATH":
			out[name] = given(own.Replace(withoutHook(*value)))
		default:
			out[name] = new(own.Replace(*value))
		}
	}
	maps.DeleteFunc(out, func(name string, _ *string) bool {
		return strings.HasPrefix(name, "CLUSTERRUN_") || slices.Contains(fleeting, name)
	})
	return out
}

// withoutHook returns a search path of Python without the directory that clusterrun puts in front.
func withoutHook(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, ":"), func(dir string) bool {
		return strings.HasPrefix(filepath.Base(dir), taskenv.HookPrefix)
	}), ":")
}

func files(s *tasklog.Start) values {
	out := values{"directory": &s.Dir}
	for _, f := range s.Files {
		out[f.Path] = new(fmt.Sprintf("%d bytes of %s", f.Size, f.Modified.UTC().Format(time.RFC3339)))
	}
	return out
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ending returns the state of a task, or how it ended.
func ending(t starter.TaskStatus, own *strings.Replacer) values {
	if t.Exit == nil {
		return values{"state": given(string(t.State))}
	}
	return values{
		"exit":    new(cmp.Or(t.Exit.Signal, strconv.Itoa(t.Exit.ExitCode))),
		"cause":   given(string(t.Exit.Cause)),
		"message": given(own.Replace(t.Exit.Message)),
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
			out["value of "+t.Name] = new(spec.ShownValue(t.Value))
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
