package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// Names that are not parameters.
const (
	// nameTrial is replaced by the trial's number, from 0, and nameSweep by the sweep's ID.
	nameTrial = "trial"
	nameSweep = "sweep"
)

// isName reports whether text is a valid parameter name.
func isName(text string) bool {
	for i, c := range []byte(text) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return text != ""
}

// fill replaces each {name} in text with the value of the parameter, and {{name}} with {name}. It
// keeps all other braces, including those of ${name}, which is a shell variable.
func fill(text string, value func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		b.WriteString(text[:open])
		rest := text[open+1:]
		doubled := strings.HasPrefix(rest, "{")
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
		switch {
		case !closed, !isName(name), doubled && !strings.HasPrefix(after, "}"):
			b.WriteByte('{')
			text = rest
		case doubled:
			b.WriteString("{" + name + "}")
			text = after[1:]
		case open > 0 && text[open-1] == '$':
			b.WriteString("{" + name + "}")
			text = after
		default:
			v, ok := value(name)
			if !ok {
				return "", &unknownError{name}
			}
			b.WriteString(v)
			text = after
		}
	}
}

// unknownError reports a {name} that is not a parameter.
type unknownError struct{ name string }

func (e *unknownError) Error() string { return "{" + e.name + "} is not a parameter" }

// VariableOf returns the environment variable for a parameter.
func VariableOf(name string) string {
	return spec.EnvParamPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// filler fills a spec's templates.
type filler struct {
	value   func(name string) (string, bool)
	problem error // the first one
	where   string
}

func (f *filler) text(where, text string) string {
	out, err := fill(text, f.value)
	if err != nil && f.problem == nil {
		f.problem, f.where = err, where
	}
	return out
}

func (f *filler) list(where string, texts []string) []string {
	out := slices.Clone(texts)
	for i, text := range out {
		out[i] = f.text(where, text)
	}
	return out
}

func (f *filler) env(where string, env spec.Env) spec.Env {
	if env == nil {
		return nil
	}
	out := make(spec.Env, len(env))
	//workflowcheck:ignore the order of entries makes no difference but for the first problem
	for name, v := range env {
		if !v.IsReference() {
			v.Value = f.text(where+"."+name, v.Value)
		}
		out[name] = v
	}
	return out
}

// spec returns a copy of s with all templates filled.
func (f *filler) spec(s *spec.RunSpec) *spec.RunSpec {
	out := *s
	out.Command = f.list("command", s.Command)
	out.Dir = f.text("dir", s.Dir)
	out.Env = f.env("env", s.Env)
	out.Tasks = slices.Clone(s.Tasks)
	for i := range out.Tasks {
		g := &out.Tasks[i]
		at := "tasks." + g.Type
		g.Command, g.Args = f.list(at+".command", g.Command), f.list(at+".args", g.Args)
		g.Dir, g.Env = f.text(at+".dir", g.Dir), f.env(at+".env", g.Env)
		if g.Overrides == nil {
			continue
		}
		overrides := make(map[string]spec.Override, len(g.Overrides))
		//workflowcheck:ignore the order of entries makes no difference but for the first problem
		for index, o := range g.Overrides {
			at := at + ".overrides." + index
			overrides[index] = spec.Override{
				Command: f.list(at+".command", o.Command), Args: f.list(at+".args", o.Args),
				Dir: f.text(at+".dir", o.Dir), Env: f.env(at+".env", o.Env),
			}
		}
		g.Overrides = overrides
	}
	return &out
}

// Trial returns a trial's spec. t must be the trials of s.Grid.
func (s *Spec) Trial(t *Trials, sweep string, trial int) (*spec.RunSpec, error) {
	values := t.Values(trial)
	f := &filler{value: func(name string) (string, bool) {
		switch name {
		case nameTrial:
			return strconv.Itoa(trial), true
		case nameSweep:
			return sweep, true
		}
		i := slices.IndexFunc(values, func(v Value) bool { return v.Name == name })
		if i < 0 {
			return "", false
		}
		return values[i].Value, true
	}}
	out := f.spec(s.Run)
	if f.problem != nil {
		return nil, fmt.Errorf("%s: %w; there are %s. Write %s for the literal braces", f.where, f.problem, braced(t.names), f.problem.(*unknownError).bracedName())
	}
	env := spec.Env{}
	//workflowcheck:ignore the order of entries makes no difference
	maps.Copy(env, out.Env)
	env[spec.EnvSweep], env[spec.EnvTrial] = spec.Variable{Value: sweep}, spec.Variable{Value: strconv.Itoa(trial)}
	for _, v := range values {
		env[VariableOf(v.Name)] = spec.Variable{Value: v.Value}
	}
	out.Env = env
	return out, nil
}

func (e *unknownError) bracedName() string { return "{{" + e.name + "}}" }

// braced returns "{lr}, {seed}, {trial} and {sweep}".
func braced(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("{" + name + "}, ")
	}
	return b.String() + "{" + nameTrial + "} and {" + nameSweep + "}"
}

// Words returns values in display form, such as "lr=1e-3 seed=0".
func Words(values []Value) string {
	words := list.Of(values, func(v Value) string { return v.Name + "=" + v.Value })
	return strings.Join(words, " ")
}
