package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Policy defines what a host runs. A nil Policy allows everything.
type Policy struct {
	// AllowedSigners is the file with the signers' keys, in the format of ssh-keygen(1).
	AllowedSigners string `json:"allowed_signers,omitempty"`
	// Audit is the file that logs each start, refusal and request.
	Audit string `json:"audit,omitempty"`
	Rules []Rule `json:"rules"`
}

// Rule allows its signers' requests within its bounds. Except where a field's documentation says
// otherwise, a nil list does not restrict anything, and an empty list does not allow anything.
type Rule struct {
	// Signers lists principals, patterns for principals, or [Unsigned].
	Signers []string `json:"signers"`
	// User is the name or number of the Unix user that runs the tasks. If empty, it is the host
	// worker's user, unless that is root.
	User string `json:"user,omitempty"`
	// Programs lists absolute paths.
	Programs []string `json:"programs,omitzero"`
	// Directories lists the directories that must contain the working directories and the logs.
	Directories []string `json:"directories,omitzero"`
	// Env lists the variables that a spec may set. If it is nil, a spec may set any variables or,
	// if Programs is set, none.
	Env []string `json:"env,omitzero"`
	// Secrets lists the host's secrets that a spec may refer to. All others are denied.
	Secrets Secrets `json:"secrets,omitzero"`
	// Webhooks lists hosts, or patterns for hosts, that may receive notices about the run. All
	// others are denied.
	Webhooks []string `json:"webhooks,omitzero"`
	// Requests lists the permitted requests to running tasks.
	Requests []Ask `json:"requests,omitzero"`
	// Closures reports whether the tasks may receive closures, which are never signed.
	Closures bool `json:"closures,omitempty"`
}

// Secrets are a host's secrets that specs may refer to.
type Secrets struct {
	// Env lists variables of the host worker, and Files lists paths.
	Env   []string `json:"env,omitzero"`
	Files []string `json:"files,omitzero"`
}

// Unsigned is the signer of an unsigned request.
const Unsigned = "unsigned"

// Ask is a kind of request to running tasks.
type Ask string

// The values of [Ask]. Ending a task is not among them, because anyone who can reach the server can
// end the run.
const (
	AskRestart  Ask = "restart"
	AskSignal   Ask = "signal"
	AskStacks   Ask = "stacks"
	AskClosures Ask = "closures"
)

// Asks lists the values of [Rule.Requests].
var Asks = []Ask{AskRestart, AskSignal, AskStacks}

// Request is a request to start a process on this host, or to act on a running one.
type Request struct {
	// Signers lists the principals of the key that signed it. It is empty if the request is
	// unsigned.
	Signers []string
	// Program is the file to execute. Directories lists the directories in which it works and
	// writes. All paths are absolute, clean and free of symbolic links, or are in [Shipped].
	Program     string
	Directories []string
	// Env lists the variables that the spec sets.
	Env []string
	// SecretEnv and SecretFiles list the spec's secrets.
	SecretEnv, SecretFiles []string
	// Notice reports whether a notice is sent to a webhook instead of starting a program. Webhook
	// is the webhook's host, or empty if unknown.
	Notice  bool
	Webhook string
	// AsRoot reports whether the host worker runs as root.
	AsRoot bool
	// Ask is the request to the running process. It is empty if the process is being started.
	Ask Ask
	// Problem, if not empty, is why the request cannot be judged and is therefore denied.
	Problem string
}

// Shipped is the directory of a run's shipped files.
const Shipped = "ship:/"

// Decision answers a [Request].
type Decision struct {
	Allowed bool `json:"allowed"`
	// Rule is the number of the deciding rule, from 1, or 0 if none decided.
	Rule int `json:"rule,omitempty"`
	// User is the user who runs the process. It is empty for the host worker's user. It is root
	// only if the rule specifies root or 0. The caller must refuse a user who has root's uid but
	// another name.
	User string `json:"user,omitempty"`
	// Secrets lists the secrets that the process may receive.
	Secrets Secrets `json:"secrets,omitzero"`
	// Reason is why the request is denied.
	Reason string `json:"reason,omitempty"`
}

// Decide returns the decision of the first rule that applies to the request. If none applies, the
// request is denied.
func (p *Policy) Decide(r Request) Decision {
	if p == nil {
		return Decision{Allowed: true, Secrets: Secrets{Env: []string{"*"}, Files: []string{"/**"}}}
	}
	if r.Problem != "" {
		return Decision{Reason: r.Problem}
	}
	var why []string
	for i, rule := range p.Rules {
		if !rule.isFor(r.Signers) {
			continue
		}
		problem := rule.problem(r)
		if problem == "" {
			return Decision{Allowed: true, Rule: i + 1, User: rule.User, Secrets: rule.Secrets}
		}
		why = append(why, fmt.Sprintf("rule %d %s", i+1, problem))
	}
	if len(why) == 0 {
		return Decision{Reason: "no rule applies to " + Who(r.Signers)}
	}
	return Decision{Reason: strings.Join(why, "; ")}
}

// Who returns a description of signers for use in a sentence.
func Who(signers []string) string {
	if len(signers) == 0 {
		return Unsigned + " requests"
	}
	return strings.Join(signers, ", ")
}

func (r *Rule) isFor(signers []string) bool {
	if len(signers) == 0 {
		return slices.Contains(r.Signers, Unsigned)
	}
	return slices.ContainsFunc(signers, func(s string) bool { return matchesAny(r.Signers, s) })
}

// problem returns why the rule does not apply to a request from its signers, or an empty string if
// it applies.
func (r *Rule) problem(q Request) string {
	env := r.Env
	if env == nil && r.Programs != nil {
		env = []string{}
	}
	programs, webhooks := []string{q.Program}, []string{q.Webhook}
	if q.Notice {
		programs = nil
	}
	if q.Webhook == "" {
		webhooks = nil
	}
	for _, bound := range []struct {
		allowed []string // nil means that everything is allowed
		asked   []string
		matches func(patterns []string, s string) bool
		verb    string
	}{
		{r.Programs, programs, pathMatches, "does not allow the program"},
		{r.Directories, q.Directories, dirMatches, "does not allow the directory"},
		{env, q.Env, matchesAny, "does not let a spec set"},
		{none(r.Secrets.Env), q.SecretEnv, matchesAny, "does not give the variable"},
		{none(r.Secrets.Files), q.SecretFiles, pathMatches, "does not give the file"},
		{none(r.Webhooks), webhooks, matchesAny, "does not allow webhooks of"},
	} {
		if bound.allowed == nil {
			continue
		}
		for _, s := range bound.asked {
			if !bound.matches(bound.allowed, s) {
				return bound.verb + " " + s
			}
		}
	}
	switch {
	case q.AsRoot && r.User == "":
		return "names no user, but the host worker runs as root"
	case q.Ask == AskClosures && !r.Closures:
		return "does not allow closures"
	case q.Ask != "" && q.Ask != AskClosures && r.Requests != nil && !slices.Contains(r.Requests, q.Ask):
		return "does not allow the request " + string(q.Ask)
	}
	return ""
}

// none turns a nil list into an empty one, which does not allow anything.
func none(patterns []string) []string { return append([]string{}, patterns...) }

// AllowsEnv reports whether a spec may refer to a variable of the host worker.
func (s Secrets) AllowsEnv(name string) bool { return matchesAny(s.Env, name) }

// AllowsFile reports whether a spec may refer to a file, given as an absolute, clean path without
// symbolic links.
func (s Secrets) AllowsFile(file string) bool { return pathMatches(s.Files, file) }

func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, s)
		return err == nil && ok && p != Unsigned
	})
}

func pathMatches(patterns []string, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if dir, all := strings.CutSuffix(p, everythingBelow); all {
			return isBelow(dir, file)
		}
		ok, err := path.Match(p, file)
		return err == nil && ok
	})
}

func dirMatches(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		p = strings.TrimSuffix(p, everythingBelow)
		return strings.TrimSuffix(p, "/") == strings.TrimSuffix(dir, "/") || isBelow(p, dir)
	})
}

// everythingBelow is the suffix of a pattern that matches everything in a directory.
const everythingBelow = "/**"

// isBelow reports whether a path is in a directory that matches a pattern.
func isBelow(pattern, file string) bool {
	depth := strings.Count(strings.TrimSuffix(pattern, "/"), "/")
	steps := strings.Split(file, "/")
	if len(steps) <= depth+1 {
		return false
	}
	ok, err := path.Match(strings.TrimSuffix(pattern, "/"), strings.Join(steps[:depth+1], "/"))
	return err == nil && ok
}
