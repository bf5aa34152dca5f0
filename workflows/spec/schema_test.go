package spec

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// beyondSchema lists the documents in testdata/bad that the schema accepts, with the rule that a
// schema does not express. The doc comment of [Schema] lists the same rules.
var beyondSchema = map[string]string{
	"notify-nobody.yaml":            "a secret needs a webhook",
	"silence_none.yaml":             "on_silence needs silence",
	"hosts_counts.yaml":             "hosts compared with the tasks",
	"hosts_elastic.yaml":            "what an elastic run needs",
	"elastic_types.yaml":            "what an elastic run needs",
	"elastic_fixed.yaml":            "elastic without a range of hosts",
	"mpi.yaml":                      "ranks of MPI that are started again one by one",
	"on_disconnect_stop_after.yaml": "the least time",
	"logquota.yaml":                 "sizes",
	"duplicate_keys.json":           "a key given twice",
	"duplicate_keys.yaml":           "a key given twice",
	"tags.yaml":                     "tags of YAML",
	"surrogate.json":                "half of a surrogate pair",
	"too_many_groups.yaml":          "number of tasks over all groups",
	"many_chief_groups.yaml":        "number of chiefs",
	"two_chiefs.yaml":               "number of chiefs",
	"duplicate_types.yaml":          "types compared",
	"duplicate_addresses.yaml":      "addresses compared",
	"addresses.yaml":                "syntax of addresses",
	"local_barriers.yaml":           "hosts of addresses compared",
	"no_command.yaml":               "command here or there",
	"no_command_for_some.yaml":      "command here or there",
	"max_restarts.yaml":             "max_restarts with auto_restart",
	"masks_beyond_tasks.yaml":       "ranks compared with the number of tasks",
	"mask_ranges.yaml":              "ranges that run backwards",
	"overrides_beyond.yaml":         "indices compared with the count",
	"prefix.yaml":                   "syntax of prefixes",
	"prefix_open.yaml":              "syntax of prefixes",
	"closures_env.yaml":             "values of variables that mean something to clusterrun",
	"durations_out_of_range.yaml":   "durations that are too long, or 0 where that is not allowed",
}

func resolvedSchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	s := must.JSON[jsonschema.Schema](t, Schema())
	r := must.Get(s.Resolve(nil))(t)
	return r
}

func TestSchemaGolden(t *testing.T) {
	golden(t, "testdata/schema.golden.json", string(Schema()))
	for range 20 {
		require.Equal(t, Schema(), Schema())
	}
}

func TestSchemaAcceptsGoodSpecs(t *testing.T) {
	schema := resolvedSchema(t)
	for _, d := range documents(t, "good") {
		t.Run(d.name, func(t *testing.T) {
			require.NoError(t, schema.Validate(instance(t, d)))
			s := must.Get(d.decode())(t)
			require.NoError(t, schema.Validate(jsonValue(t, s)), "as Go writes it")
			require.NoError(t, schema.Validate(jsonValue(t, s.WithDefaults())), "with defaults")
		})
	}
}

func TestSchemaRefusesBadSpecs(t *testing.T) {
	schema := resolvedSchema(t)
	unseen := map[string]bool{}
	for name := range beyondSchema {
		unseen[name] = true
	}
	for _, d := range documents(t, "bad") {
		delete(unseen, d.name)
		t.Run(d.name, func(t *testing.T) {
			v, ok := instanceOf(d)
			if !ok {
				t.Skip("no document at all")
			}
			err := schema.Validate(v)
			if rule, beyond := beyondSchema[d.name]; beyond {
				require.NoError(t, err, "the schema does refuse this, so it is not beyond it: %s", rule)
			} else {
				require.Error(t, err)
			}
		})
	}
	assert.Empty(t, unseen, "documents listed in beyondSchema that do not exist")
}

func TestFieldsCoverTheTypes(t *testing.T) {
	unseen := map[string]bool{}
	for _, f := range fields {
		assert.False(t, unseen[f.of], "%s is there twice", f.of)
		unseen[f.of] = true
	}
	var walk func(typ reflect.Type, key string)
	walk = func(typ reflect.Type, key string) {
		delete(unseen, key)
		switch typ.Kind() {
		case reflect.Pointer:
			walk(typ.Elem(), key)
		case reflect.Slice:
			walk(typ.Elem(), key+"[]")
		case reflect.Map:
			walk(typ.Elem(), key+".*")
		case reflect.Struct:
			if typ == variableType {
				typ = reflect.TypeFor[Source]()
			}
			for i := range typ.NumField() {
				name := jsonName(typ.Field(i))
				k := fieldKey(typ, name)
				assert.NotEmpty(t, fieldOf(k).doc, "%s has no description", k)
				assert.True(t, strings.HasPrefix(fieldOf(k).example, name+": "), "%s has no example of itself", k)
				walk(typ.Field(i).Type, k)
			}
		}
	}
	walk(reflect.TypeFor[RunSpec](), "")
	assert.Empty(t, unseen, "entries without a field")
}

func TestFieldExamplesDecode(t *testing.T) {
	for _, f := range fields {
		key := f.of
		if f.example == "" {
			continue
		}
		doc := "tasks: [{type: worker, count: 9}]\nauto_restart: true\nsilence: 1m\ncommand: [x]\n"
		name, _, _ := strings.Cut(f.example, ":")
		doc = regexp.MustCompile(`(?m)^`+name+`: .*\n`).ReplaceAllString(doc, "")
		if strings.Contains(key, "lastic") {
			doc += "hosts: \"3:9\"\nrestart_scope: group\n"
		}
		switch typ, _, _ := strings.Cut(key, "."); typ {
		case "RunSpec":
			doc += f.example
		case "TaskGroup":
			doc = "command: [x]\ntasks:\n  - " + f.example + "\n"
			if name != "type" {
				doc += "    type: worker\n"
			}
			if name != "count" && name != "addresses" {
				doc += "    count: 2\n"
			}
		case "Override":
			doc = "command: [x]\ntasks: [{type: worker, overrides: {0: {" + f.example + "}}}]"
		case "Notification":
			doc += "notify: {" + f.example + "}"
			if name != "webhook" {
				doc = strings.TrimSuffix(doc, "}") + `, webhook: "https://example.com"}`
			}
		case "After":
			doc += "after: [{" + f.example + "}]"
			if name != "run" {
				doc = strings.TrimSuffix(doc, "}]") + ", run: prepare}]"
			}
		case "StopTogether":
			doc += "stop_together: {" + f.example + "}"
		case "Stop", "Logs", "Closures", "Hosts", "Elastic":
			doc += strings.ToLower(typ) + ": {" + f.example + "}"
		}
		_, err := DecodeYAML([]byte(doc))
		assert.NoError(t, err, "%s:\n%s", key, doc)
	}
}

func TestDurationPatternAgreesWithParser(t *testing.T) {
	pattern := regexp.MustCompile(durationPattern)
	for _, text := range []string{"0", "0s", "3s", "1h30m", "1.5h", ".5s", "1.s", "1us", "1µs", "1μs", "1ns", "", "s", "3", "1d", "1 s", "3S", ".", ".s", "1h 3m", "3s\n"} {
		_, err := ParseDuration(text)
		assert.Equal(t, err == nil, pattern.MatchString(text), "%q", text)
	}
}

func TestSignalPatternAgreesWithTable(t *testing.T) {
	pattern := regexp.MustCompile(signalPattern)
	for _, name := range append(signalNames(), "TERM", "SIG", "", "15", "SIGSIGTERM", "term", "SIGFOO", "RTMIN") {
		_, err := SignalNumber(name)
		assert.Equal(t, err == nil, pattern.MatchString(name), "%q", name)
	}
}

func instance(t testing.TB, d document) any {
	t.Helper()
	v, ok := instanceOf(d)
	require.True(t, ok)
	return v
}

// instanceOf parses a document as a schema validator does.
func instanceOf(d document) (any, bool) {
	parse := parseJSON
	if strings.HasSuffix(d.name, ".yaml") {
		parse = parseYAML
	}
	c := &checker{}
	n := readDocument(c, d.data, parse)
	if n == nil {
		return nil, false
	}
	return plainValue(n), true
}

func plainValue(n *node) any {
	switch n.kind {
	case kindObject:
		m := map[string]any{}
		for i := range n.members {
			if _, twice := m[n.members[i].name]; !twice {
				m[n.members[i].name] = plainValue(&n.members[i].value)
			}
		}
		return m
	case kindList:
		list := []any{}
		for i := range n.items {
			list = append(list, plainValue(&n.items[i]))
		}
		return list
	case kindText:
		return n.text
	case kindNumber, kindBool:
		var v any
		if json.Unmarshal([]byte(strings.ToLower(n.text)), &v) != nil {
			return "not a JSON number: " + n.text
		}
		return v
	default:
		return nil
	}
}

func jsonValue(t testing.TB, v any) any {
	t.Helper()
	out := must.JSON[any](t, toJSON(t, v))
	return out
}
