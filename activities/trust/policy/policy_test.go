package policy

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestDirectoryStandsForItselfAndWhatIsBelow(t *testing.T) {
	for dir, allowed := range map[string]bool{
		"/srv/alice": true, "/srv/alice/x/y": true, "/srv/alicex": false, "/srv": false, "/srv/bob": false, "/": false,
		"ship:/": true, "ship:/a": true,
	} {
		assert.Equal(t, allowed, dirMatches([]string{"/srv/alice", "ship:/"}, dir), dir)
	}
	assert.True(t, dirMatches([]string{"/"}, "/etc"))
	assert.True(t, dirMatches([]string{"/srv/*"}, "/srv/bob/x"))
}

func TestProgramPatterns(t *testing.T) {
	patterns := []string{"/usr/bin/python3", "/opt/*/run", "/srv/jobs/**", "ship:/**"}
	for program, allowed := range map[string]bool{
		"/usr/bin/python3": true, "/usr/bin/python3.12": false, "/opt/a/run": true, "/opt/a/b/run": false,
		"/srv/jobs": false, "/srv/jobs/a": true, "/srv/jobs/a/b": true, "/srv/jobsx/a": false, "ship:/train": true, "": false,
	} {
		assert.Equal(t, allowed, pathMatches(patterns, program), program)
	}
	assert.True(t, pathMatches([]string{"/**"}, "/bin/sh"))
}

const example = `
allowed_signers: signers
rules:
  - signers: [alice@example.com]
    user: alice
    programs: [/usr/bin/python3, "/opt/jobs/**"]
    directories: [/srv/alice]
    env: ["NCCL_*", EPOCHS]
    secrets: {env: [TOKEN], files: ["/etc/secrets/*"]}
    requests: [stacks]
  - signers: ["*@example.com", unsigned]
    user: nobody
    programs: [/opt/jobs/selftest]
  - signers: [admin]
    user: root
  - signers: [self]
    closures: true
`

func TestDecide(t *testing.T) {
	p := must.Get(Decode([]byte(example)))(t)
	python := Request{Signers: []string{"alice@example.com"}, Program: "/usr/bin/python3", Directories: []string{"/srv/alice/job"}, Env: []string{"NCCL_DEBUG"}}
	with := func(change func(*Request)) Request {
		r := python
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		request Request
		rule    int
		user    string
		reason  string
	}{
		"first rule":            {request: python, rule: 1, user: "alice"},
		"second rule of alice":  {request: Request{Signers: []string{"alice@example.com"}, Program: "/opt/jobs/selftest", Directories: []string{"/"}}, rule: 2, user: "nobody"},
		"pattern of signers":    {request: Request{Signers: []string{"bob@example.com"}, Program: "/opt/jobs/selftest"}, rule: 2, user: "nobody"},
		"one of several names":  {request: Request{Signers: []string{"x", "admin"}, Program: "/bin/sh", Env: []string{"LD_PRELOAD"}, AsRoot: true}, rule: 3, user: "root"},
		"unsigned":              {request: Request{Program: "/opt/jobs/selftest"}, rule: 2, user: "nobody"},
		"unsigned is no signer": {request: Request{Signers: []string{"unsigned"}, Program: "/opt/jobs/selftest"}, reason: "no rule applies to unsigned"},
		"nobody's rule":         {request: Request{Signers: []string{"eve"}, Program: "/bin/sh"}, reason: "no rule applies to eve"},
		"another program":       {request: with(func(r *Request) { r.Program = "/bin/sh" }), reason: "rule 1 does not allow the program /bin/sh; rule 2 does not allow the program /bin/sh"},
		"another directory":     {request: with(func(r *Request) { r.Directories = []string{"/srv/alice", "/etc"} }), reason: "rule 1 does not allow the directory /etc"},
		"another variable":      {request: with(func(r *Request) { r.Env = []string{"LD_PRELOAD"} }), reason: "rule 1 does not let a spec set LD_PRELOAD"},
		"variable of no list":   {request: Request{Program: "/opt/jobs/selftest", Env: []string{"A"}}, reason: "rule 2 does not let a spec set A"},
		"a secret":              {request: with(func(r *Request) { r.SecretEnv, r.SecretFiles = []string{"TOKEN"}, []string{"/etc/secrets/a"} }), rule: 1, user: "alice"},
		"another secret":        {request: with(func(r *Request) { r.SecretEnv = []string{"KEY"} }), reason: "rule 1 does not give the variable KEY"},
		"another secret file":   {request: with(func(r *Request) { r.SecretFiles = []string{"/etc/shadow"} }), reason: "rule 1 does not give the file /etc/shadow"},
		"no secrets by default": {request: Request{Program: "/opt/jobs/selftest", SecretEnv: []string{"TOKEN"}}, reason: "rule 2 does not give the variable TOKEN"},
		"root has to be named":  {request: Request{Signers: []string{"self"}, Program: "/bin/sh", AsRoot: true}, reason: "rule 4 names no user, but the host worker runs as root"},
		"the worker's user":     {request: Request{Signers: []string{"self"}, Program: "/bin/sh"}, rule: 4},
		"a request":             {request: with(func(r *Request) { r.Ask = AskStacks }), rule: 1, user: "alice"},
		"another request":       {request: with(func(r *Request) { r.Ask = AskSignal }), reason: "rule 1 does not allow the request signal"},
		"any request":           {request: Request{Program: "/opt/jobs/selftest", Ask: AskRestart}, rule: 2, user: "nobody"},
		"closures":              {request: Request{Signers: []string{"self"}, Ask: AskClosures}, rule: 4},
		"no closures":           {request: with(func(r *Request) { r.Ask = AskClosures }), reason: "rule 1 does not allow closures"},
	} {
		d := p.Decide(c.request)
		assert.Equal(t, c.rule, d.Rule, name)
		assert.Equal(t, c.rule > 0, d.Allowed, name)
		assert.Equal(t, c.user, d.User, name)
		if c.reason != "" || d.Reason != "" {
			assert.Contains(t, d.Reason, c.reason, name)
		}
	}
}

func TestWithoutPolicyEverythingIsAllowed(t *testing.T) {
	var none *Policy
	d := none.Decide(Request{Program: "/bin/sh", AsRoot: true})
	assert.True(t, d.Allowed)
	assert.True(t, d.Secrets.AllowsEnv("TOKEN"))
	assert.True(t, d.Secrets.AllowsFile("/etc/token"))
}

func TestEmptyListsAllowNothing(t *testing.T) {
	p := must.Get(Decode([]byte("rules: [{signers: [unsigned], programs: [], requests: []}]")))(t)
	assert.False(t, p.Decide(Request{Program: "/bin/sh"}).Allowed)
	p = must.Get(Decode([]byte("rules: []")))(t)
	assert.False(t, p.Decide(Request{Program: "/bin/sh"}).Allowed)
}

func TestInvalidPolicies(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{signers: [unsigned], program: [/x]}]":       "rules[0].program: not a field of rule; did you mean programs?",
		"rules: [{signers: [unsigned], env: A}]":              "rules[0].env: must be a list of strings",
		"rules: [{signers: [unsigned], signers: [unsigned]}]": "rules[0].signers: given twice",
		"rules:\n- signers: [unsigned]\n  user: 5":            "line 3: rules[0].user: must be a string, not the number 5; write it in quotes",
		"rules: [{}]":                 "rules[0].signers: missing",
		"{}":                          "rules: missing",
		"":                            "the document is empty",
		"rules: [{signers: [alice]}]": "has no allowed_signers",
		"rules: [{signers: [unsigned], programs: [python3]}]":           `rules[0].programs[0]: "python3" is not an absolute path`,
		"rules: [{signers: [unsigned], programs: [/a/../b]}]":           "write /b",
		"rules: [{signers: [unsigned], directories: [\"/a/**/b\"]}]":    "has ** before its end",
		"rules: [{signers: [unsigned], programs: [\"/a/[\"]}]":          "is not a pattern",
		"rules: [{signers: [unsigned], requests: [stop]}]":              `rules[0].requests[0]: "stop" is not a request; write restart, signal or stacks`,
		"rules: [{signers: [unsigned], user: \"a b\"}]":                 "is not a user name",
		"rules: [{signers: [unsigned], secrets: {files: [token]}}]":     "rules[0].secrets.files[0]",
		"rules: [{signers: [unsigned], secrets: {file: [/etc/token]}}]": "rules[0].secrets.file: not a field of secrets; did you mean files?",
	} {
		_, err := Decode([]byte(text))
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, text)
		assert.ErrorContains(t, err, want, text)
	}
}

// TestSchemaHasEachField compares the schema with the types.
func TestSchemaHasEachField(t *testing.T) {
	s := must.JSON[jsonschema.Schema](t, Schema)
	var walk func(typ reflect.Type, s *jsonschema.Schema)
	walk = func(typ reflect.Type, s *jsonschema.Schema) {
		assert.NotNil(t, s.AdditionalProperties, typ)
		assert.Len(t, s.Properties, typ.NumField(), typ)
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			of := s.Properties[name]
			if !assert.NotNil(t, of, name) {
				continue
			}
			inner := f.Type
			if inner.Kind() == reflect.Slice {
				inner, of = inner.Elem(), of.Items
			} else {
				assert.NotEmpty(t, of.Description, name)
			}
			if inner.Kind() == reflect.Struct {
				walk(inner, of)
			}
		}
	}
	walk(reflect.TypeFor[Policy](), &s)

	resolved := must.Get(s.Resolve(nil))(t)
	var good any
	require.NoError(t, yaml.Unmarshal([]byte(example), &good))
	assert.NoError(t, resolved.Validate(good))
	var bad any
	require.NoError(t, yaml.Unmarshal([]byte("rules: [{signers: [a], program: [/x]}]"), &bad))
	assert.Error(t, resolved.Validate(bad))
}

// FuzzDecide checks that an allowed request is within the bounds of the rule that allows it and of
// no earlier rule, and that a signer without a rule is not allowed anything.
func FuzzDecide(f *testing.F) {
	f.Add(example, "alice@example.com", "/usr/bin/python3", "/srv/alice", "EPOCHS", false)
	f.Add("rules: [{signers: [unsigned], programs: [\"/a/**\"]}]", "", "/a/b", "/", "A", true)
	f.Fuzz(func(t *testing.T, text, signer, program, dir, env string, root bool) {
		p, err := Decode([]byte(text))
		if err != nil {
			return
		}
		r := Request{Program: program, Directories: []string{dir}, Env: []string{env}, AsRoot: root}
		if signer != "" {
			r.Signers = []string{signer}
		}
		d := p.Decide(r)
		if !d.Allowed {
			assert.NotEmpty(t, d.Reason)
			assert.Zero(t, d.Rule)
			return
		}
		rule := p.Rules[d.Rule-1]
		assert.Equal(t, rule.User, d.User)
		if root {
			assert.NotEmpty(t, d.User, "root was lent")
		}
		if signer == "" {
			assert.Contains(t, rule.Signers, Unsigned)
		}
		if rule.Programs != nil {
			assert.True(t, pathMatches(rule.Programs, program))
			assert.True(t, matchesAny(rule.Env, env))
		}
		for _, before := range p.Rules[:d.Rule-1] {
			assert.False(t, (&Policy{Rules: []Rule{before}}).Decide(r).Allowed, "an earlier rule was for it")
		}
	})
}
