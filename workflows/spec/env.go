package spec

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
)

// Env are environment variables by name.
type Env map[string]Variable

// EnvOf returns variables of these values.
func EnvOf(values map[string]string) Env {
	env := make(Env, len(values))
	//workflowcheck:ignore the order of entries makes no difference
	for name, value := range values {
		env[name] = Variable{Value: value}
	}
	return env
}

// Variable is the value of an environment variable: a text, or where the host of the task
// takes it from, at each start of a process. In YAML and JSON it is the text alone, or
// {from_env: NAME}, or {from_file: PATH}.
type Variable struct {
	Value string
	From  Source
}

// Source is where a host takes the value of a variable from. The value itself is in
// nothing that leaves the host, nor in any file there.
type Source struct {
	FromEnv  string `json:"from_env,omitempty"`
	FromFile string `json:"from_file,omitempty"`
}

// IsReference reports whether the host of the task has the value.
func (v Variable) IsReference() bool { return v.From != Source{} }

// MarshalJSON writes the text, or where the value is.
func (v Variable) MarshalJSON() ([]byte, error) {
	if v.IsReference() {
		return json.Marshal(v.From)
	}
	return json.Marshal(v.Value)
}

// UnmarshalJSON reads what [Variable.MarshalJSON] writes. What people write is read by
// [Decode], which says what is wrong with it.
func (v *Variable) UnmarshalJSON(b []byte) error {
	*v = Variable{}
	if json.Unmarshal(b, &v.Value) == nil {
		return nil
	}
	return json.Unmarshal(b, &v.From)
}

var variableType = reflect.TypeFor[Variable]()

func (c *checker) fillVariable(path, key string, n *node, v reflect.Value) bool {
	if n.kind != kindObject {
		return c.fill(path, key, n, v.FieldByName("Value"))
	}
	problems := len(c.problems) + c.more
	from := v.FieldByName("From")
	c.fillStruct(path, key, n, from)
	if from.IsZero() && problems == len(c.problems)+c.more {
		c.malform(path, n.line, "does not say where the value is", sourceRemedy)
	}
	return !from.IsZero()
}

const sourceRemedy = "write {from_env: NAME} or {from_file: PATH}"

// checkSource checks where the value of a variable is.
func (c *checker) checkSource(path, name string, from Source) {
	switch {
	case from.FromEnv != "" && from.FromFile != "":
		c.add(path, "has two places to take the value from", sourceRemedy)
	case name == EnvTransientFailures:
		c.add(path, "clusterrun reads this variable itself, and not on the host", "write its value")
	case from.FromFile != "":
		if p := path + ".from_file"; c.checkText(p, from.FromFile) && !filepath.IsAbs(from.FromFile) {
			c.add(p, Quote(from.FromFile)+" is a relative path, and hosts have no common place to start from", "write an absolute one, such as /run/secrets/token")
		}
	case c.checkText(path+".from_env", from.FromEnv) && strings.Contains(from.FromEnv, "="):
		c.add(path+".from_env", "a variable's name cannot hold =", "write {from_env: NAME}")
	}
}

// size returns how many bytes a variable needs, with its name, as far as the spec knows.
func (v Variable) size(name string) int {
	return len(name) + 1 + len(v.Value) + len(v.From.FromEnv) + len(v.From.FromFile)
}

// textOf returns the value of a variable; of one that only the host knows, nothing.
func (e Env) textOf(name string) string { return e[name].Value }

func mergeEnv(layers ...Env) Env {
	var out Env
	for _, l := range layers {
		if len(l) > 0 && out == nil {
			out = Env{}
		}
		//workflowcheck:ignore the order of entries makes no difference
		maps.Copy(out, l)
	}
	return out
}
