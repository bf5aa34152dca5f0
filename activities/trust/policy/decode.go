package policy

import (
	_ "embed" // for the schema
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// Schema is the JSON Schema (draft 2020-12) of a policy.
//
//go:embed policy.schema.json
var Schema []byte

// InvalidError reports all of a policy's problems.
type InvalidError struct{ Problems []spec.Problem }

// Error lists each problem on a line.
func (e *InvalidError) Error() string {
	lines := list.Of(e.Problems, func(p spec.Problem) string { return p.String() })
	return "invalid policy: " + strings.Join(lines, "\n  ")
}

// Decode reads a policy in YAML. It refuses unknown fields, duplicate keys and patterns that
// cannot match anything. The error is an [*InvalidError] with all problems.
func Decode(data []byte) (*Policy, error) {
	p := &Policy{}
	c := checker{problems: spec.DecodeDocument(data, p)}
	c.check(p)
	if len(c.problems) > 0 {
		return nil, &InvalidError{c.problems}
	}
	return p, nil
}

type checker struct{ problems []spec.Problem }

// add records a problem, unless one was already recorded for the same place or a part of the
// document that contains it.
func (c *checker) add(where, message, remedy string) {
	if !slices.ContainsFunc(c.problems, func(p spec.Problem) bool { return p.Path == "" || strings.HasPrefix(where, p.Path) }) {
		c.problems = append(c.problems, spec.Problem{Path: where, Message: message, Remedy: remedy})
	}
}

func (c *checker) check(p *Policy) {
	if p.Rules == nil {
		c.add("rules", "missing", "for example, rules: [{signers: [alice@example.com], user: alice}]")
	}
	for i, r := range p.Rules {
		at := fmt.Sprintf("rules[%d].", i)
		if len(r.Signers) == 0 {
			c.add(at+"signers", "missing", "name principals from allowed_signers, or unsigned")
		}
		if p.AllowedSigners == "" && slices.ContainsFunc(r.Signers, func(s string) bool { return s != Unsigned }) {
			c.add(at+"signers", "names signers, but the policy has no allowed_signers", "write allowed_signers: FILE, with a file that contains their keys")
		}
		c.patterns(at+"signers", r.Signers, c.name)
		c.patterns(at+"programs", r.Programs, c.path)
		c.patterns(at+"directories", r.Directories, c.path)
		c.patterns(at+"env", r.Env, c.name)
		c.patterns(at+"webhooks", r.Webhooks, c.name)
		c.patterns(at+"secrets.env", r.Secrets.Env, c.name)
		c.patterns(at+"secrets.files", r.Secrets.Files, c.path)
		for j, ask := range r.Requests {
			if !slices.Contains(Asks, ask) {
				c.add(fmt.Sprintf("%srequests[%d]", at, j), fmt.Sprintf("%q is not a request", ask), "write restart, signal or stacks")
			}
		}
		if strings.ContainsAny(r.User, " :/\x00") {
			c.add(at+"user", fmt.Sprintf("%q is not a user name", r.User), "write a name or a number")
		}
	}
}

func (c *checker) patterns(where string, patterns []string, check func(where, pattern string)) {
	for i, p := range patterns {
		check(fmt.Sprintf("%s[%d]", where, i), p)
	}
}

func (c *checker) name(where, pattern string) {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		c.add(where, fmt.Sprintf("%q is not a pattern", pattern), `write a name, or a prefix followed by *, such as "NCCL_*"`)
	}
}

func (c *checker) path(where, pattern string) {
	rest, _ := strings.CutPrefix(pattern, strings.TrimSuffix(Shipped, "/"))
	_, err := path.Match(rest, "")
	switch {
	case err != nil:
		c.add(where, fmt.Sprintf("%q is not a pattern", pattern), "write a path, such as /opt/jobs/*")
	case !path.IsAbs(rest):
		c.add(where, fmt.Sprintf("%q is not an absolute path", pattern), "write one such as /usr/bin/python3, or use ship:/ for shipped files")
	case path.Clean(rest) != rest && path.Clean(rest)+"/" != rest:
		c.add(where, fmt.Sprintf("%q is not a clean path", pattern), "write "+path.Clean(rest))
	case strings.Contains(strings.TrimSuffix(rest, everythingBelow), "**"):
		c.add(where, fmt.Sprintf("%q has ** before its end", pattern), "write /** at the end, for everything in a directory")
	}
}
