package activities

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// variables has the values of the variables of tasks, including those that only this host
// knows. They are read on demand and stored nowhere: a process that is started again gets the
// current values.
type variables struct {
	host    string
	allowed policy.Secrets
	// base is the environment of the host worker, and own are [Config.Env].
	base, own []string
	// known caches the answers, for callers that ask for many tasks.
	known map[spec.Source]answer
}

type answer struct {
	value   string
	problem *spec.Problem
}

func (c *checks) variables(allowed policy.Secrets) variables {
	return variables{c.Name, allowed, os.Environ(), c.Env, map[spec.Source]answer{}}
}

// lent are the secrets that runs may use on a host worker without a policy: those that its
// tasks could read themselves.
var lent = (*policy.Policy)(nil).Decide(policy.Request{}).Secrets

// of returns the variables of a task, and the problems of those that have no value here.
func (v variables) of(t spec.Task) (map[string]string, []spec.Problem) {
	values := make(map[string]string, len(v.own)+len(t.Env))
	for _, kv := range v.own {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	var problems []spec.Problem
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		variable := t.Env[name]
		if !variable.IsReference() {
			values[name] = variable.Value
			continue
		}
		a, ok := v.known[variable.From]
		if !ok {
			a.value, a.problem = taskenv.Secret(v.base, variable.From, v.allowed)
			v.known[variable.From] = a
		}
		if p := a.problem; p != nil {
			problems = append(problems, spec.Problem{
				Path: "env." + name + "." + p.Path, Remedy: p.Remedy,
				Message: fmt.Sprintf("on host %s: %s", v.host, p.Message),
			})
			continue
		}
		values[name] = a.value
	}
	return values, problems
}
