package specs

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// A process on another host gets its host worker's environment, overridden by the spec's. Variables
// that it needs from this shell are added to the spec.

// maxShellEnv limits, in bytes, the part of the shell's environment that is sent to every host
// of the run.
const maxShellEnv = 256 << 10

// variables holds the flags that set processes' variables.
type variables struct {
	env, export, secrets []string
}

func (v *variables) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&v.env, "env", nil, "set `NAME=VALUE` for the processes; the run's history contains it")
	SecretFlag(fs, &v.secrets)
	fs.StringArrayVarP(&v.export, "export", "x", nil, "pass this shell's variable `NAME` to the processes; the run's history contains it")
}

// over returns a spec's environment, overridden by the variables, or nil if there are none.
func (v *variables) over(under spec.Env) (env spec.Env, problems []string) {
	env = maps.Clone(under)
	if env == nil {
		env = spec.Env{}
	}
	sent := map[string]int{}
	for _, text := range v.export {
		name, value, given := strings.Cut(text, "=")
		if !given {
			var set bool
			if value, set = os.LookupEnv(name); !set {
				problems = append(problems, fmt.Sprintf("-x %s: this shell has no such variable; export it, or write -x %s=VALUE", text, name))
				continue
			}
		}
		if name == "" {
			problems = append(problems, fmt.Sprintf("-x %q: write NAME or NAME=VALUE", text))
			continue
		}
		env[name], sent[name] = spec.Variable{Value: value}, len(name)+len(value)
	}
	for _, text := range v.env {
		name, value, err := ParseEnv(text)
		if err != nil {
			problems = append(problems, err.Error()+"; -x NAME takes the value from this shell")
			continue
		}
		env[name], sent[name] = spec.Variable{Value: value}, 0
	}
	for _, text := range v.secrets {
		name, secret, err := ParseSecret(text)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		env[name] = secret
		delete(sent, name)
	}
	if problem := tooMuch(sent); problem != "" {
		problems = append(problems, problem)
	}
	if len(env) == 0 {
		return nil, problems
	}
	return env, problems
}

// ParseEnv parses a value of --env.
func ParseEnv(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("--env %q: write NAME=VALUE", text)
	}
	return name, value, nil
}

// SecretFlag adds --secret.
func SecretFlag(fs *pflag.FlagSet, texts *[]string) {
	fs.StringArrayVar(texts, "secret", nil, "set `NAME=SOURCE` on the host, env:VARIABLE or file:PATH; the value is not stored")
}

// ParseSecret parses a value of --secret.
func ParseSecret(text string) (name string, v spec.Variable, err error) {
	name, from, ok := strings.Cut(text, "=")
	kind, where, given := strings.Cut(from, ":")
	switch {
	case !ok || name == "" || !given || where == "":
	case kind == "env":
		v.From.FromEnv = where
		return name, v, nil
	case kind == "file":
		v.From.FromFile = where
		return name, v, nil
	}
	// The value is not repeated, because it may be the secret.
	return "", v, fmt.Errorf("--secret %s: write NAME=env:VARIABLE or NAME=file:PATH", spec.Quote(name))
}

// tooMuch refuses to send more of the shell's environment than a run can contain.
func tooMuch(sent map[string]int) string {
	total := 0
	var names []string
	for name, n := range sent {
		total += n
		names = append(names, name)
	}
	if total <= maxShellEnv {
		return ""
	}
	slices.SortFunc(names, func(a, b string) int { return sent[b] - sent[a] })
	const most = 3
	return fmt.Sprintf("-x sends %d KiB of variables, but at most %d KiB can be sent; the largest are %s: put large data into files",
		total>>10, maxShellEnv>>10, strings.Join(names[:min(len(names), most)], ", "))
}

// saySecrets warns about variables that are probably secret, because anyone who can read the
// run's history can see them.
func saySecrets(a *cli.App, s *spec.RunSpec) {
	if names := SecretsInClear(s); len(names) > 0 && a.Global.Server.CodecKeys == "" {
		a.Say("%s: probably secret, judging by its name, but the run's history stores the value for anyone who can read it; leave it on the hosts, in the host worker's environment or in a file, and name it with --secret, or encrypt the history with --codec-keys",
			shorten.List(names, cli.MaxNames))
	}
}

// SecretsInClear returns the sorted names of variables with values that are in the spec and look
// secret.
func SecretsInClear(s *spec.RunSpec) []string {
	var names []string
	note := func(env spec.Env) {
		for name, v := range env {
			if !v.IsReference() && spec.LooksSecret(name, v.Value) {
				names = append(names, name)
			}
		}
	}
	note(s.Env)
	for _, t := range s.Tasks {
		note(t.Env)
		for _, o := range t.Overrides {
			note(o.Env)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SayRanks names this shell's variables that local processes do not get, because they would make
// every process the same rank. It does so only for a command that was typed.
func SayRanks(a *cli.App, cmd *cobra.Command, args []string, s *spec.RunSpec) {
	src, err := ParseSource(cmd, args)
	names := slices.DeleteFunc(taskenv.Ranks(os.Environ()), func(name string) bool {
		_, given := s.Env[name]
		return given
	})
	if err == nil && len(src.Command) > 0 && len(names) > 0 {
		a.Say("%s: not passed on, because processes would take themselves for ranks of another launch; pass a variable on with -x NAME", shorten.List(names, cli.MaxNames))
	}
}
