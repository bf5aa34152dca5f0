package spec

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// Env are environment variables by name.
type Env map[string]Variable

// EnvOf converts a map of plain values.
func EnvOf(values map[string]string) Env {
	env := make(Env, len(values))
	//workflowcheck:ignore the order of entries makes no difference
	for name, value := range values {
		env[name] = Variable{Value: value}
	}
	return env
}

// Variable is the value of an environment variable: either a literal, or a source that the task's
// host reads each time it starts a process. In YAML and JSON, it is a string, {from_env: NAME}, or
// {from_file: PATH}.
type Variable struct {
	Value string
	From  Source
}

// Source describes how a host finds a variable's value. The value never leaves the host, and
// clusterrun does not write it to any file.
type Source struct {
	FromEnv  string `json:"from_env,omitempty"`
	FromFile string `json:"from_file,omitempty"`
}

// IsReference reports whether the task's host looks up the value.
func (v Variable) IsReference() bool { return v.From != Source{} }

var (
	// Variables probably hold secrets if their names contain one of secretWords, or one of
	// secretParts as a whole part.
	secretWords = []string{"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "WEBHOOK", "API_KEY", "APIKEY"}
	secretParts = []string{"TOKEN", "PASS", "COOKIE", "PWD", "PW", "PAT", "AUTH", "KEY", "DSN", "JWT"}
	// paths are variables that are not secret, although their names suggest it.
	paths = []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK"}

	secretValue = lazyregexp.New(`://[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY|` +
		`(^|[^A-Za-z0-9])(gh[opusr]_|github_pat_|sk-[A-Za-z0-9_-]{8}|xox[abp]-|AKIA[0-9A-Z]{8})`)
	// Every match of secretValue contains one of the literals inSecretValues.
	inSecretValues = []string{"://", "-----BEGIN ", "gh", "github_pat_", "sk-", "xox", "AKIA"}
)

// LooksSecret reports whether a variable probably holds a secret, judging by its name or its value:
// a URL with a user or password, a private key, or a string that starts like a token. Hosts call it
// for each variable of each process, so it avoids needless regular expression matching.
func LooksSecret(name, value string) bool {
	in := func(text string) func(string) bool {
		return func(part string) bool { return strings.Contains(text, part) }
	}
	upper := strings.ToUpper(name)
	switch {
	case slices.Contains(paths, name):
	case slices.ContainsFunc(secretWords, in(upper)), strings.HasSuffix(upper, "PASS"):
		return true
	default:
		for part := range strings.SplitSeq(upper, "_") {
			if slices.Contains(secretParts, part) {
				return true
			}
		}
	}
	return slices.ContainsFunc(inSecretValues, in(value)) && secretValue().MatchString(value)
}

// WithoutSecrets returns a copy of the spec that omits variable values which are probably secret.
func (s *RunSpec) WithoutSecrets() *RunSpec {
	out := clone(reflect.ValueOf(s)).Interface().(*RunSpec)
	hide := func(e Env) {
		//workflowcheck:ignore the order of entries makes no difference
		for name, v := range e {
			if !v.IsReference() && LooksSecret(name, v.Value) {
				e[name] = Variable{Value: "(perhaps a secret)"}
			}
		}
	}
	hide(out.Env)
	if w := &out.Notify.Webhook; w.Value != "" {
		w.Value = "(perhaps a secret)"
	}
	for _, g := range out.Tasks {
		hide(g.Env)
		//workflowcheck:ignore the order of entries makes no difference
		for _, o := range g.Overrides {
			hide(o.Env)
		}
	}
	return out
}

// MarshalJSON encodes the literal or the source.
func (v Variable) MarshalJSON() ([]byte, error) {
	if v.IsReference() {
		return json.Marshal(v.From)
	}
	return json.Marshal(v.Value)
}

// UnmarshalJSON parses the output of [Variable.MarshalJSON]. For specs that people write, use
// [Decode], which describes their mistakes.
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
		c.malform(path, n.line, "has no source for the value", sourceRemedy)
	}
	return !from.IsZero()
}

const sourceRemedy = "write {from_env: NAME} or {from_file: PATH}"

func (s Source) check(c *checker, path, name string) {
	switch {
	case s.FromEnv != "" && s.FromFile != "":
		c.add(path, "sets both from_env and from_file", sourceRemedy)
	case name == EnvTransientFailures:
		c.add(path, "clusterrun itself reads this variable, not the host", "write the value itself")
	case s.FromFile != "":
		if p := path + ".from_file"; checkText(c, p, s.FromFile) && !filepath.IsAbs(s.FromFile) {
			c.add(p, Quote(s.FromFile)+" is a relative path", "write an absolute path, such as /run/secrets/token")
		}
	case checkText(c, path+".from_env", s.FromEnv) && strings.Contains(s.FromEnv, "="):
		c.add(path+".from_env", "a variable's name cannot contain =", "write {from_env: NAME}")
	}
}

// size returns the size of a variable with its name, in bytes. A value that is looked up by a host
// does not count, since its size is unknown.
func (v Variable) size(name string) int {
	return len(name) + 1 + len(v.Value) + len(v.From.FromEnv) + len(v.From.FromFile)
}

// textOf returns a variable's literal value, or "" if its source is on the host.
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
