package taskapi

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 string            `json:"type"`
	Required             []string          `json:"required"`
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	AdditionalProperties any               `json:"additionalProperties"`
}

type content struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema schema `json:"schema"`
	} `json:"content"`
}

// schema returns the schema name of a body.
func (c content) schema() string {
	return strings.TrimPrefix(c.Content["application/json"].Schema.Ref, "#/components/schemas/")
}

type document struct {
	Paths      map[string]map[string]any `json:"paths"`
	Components struct {
		Responses map[string]content `json:"responses"`
		Schemas   map[string]schema  `json:"schemas"`
	} `json:"components"`
}

// described lists the request and answer types by route.
var described = map[string]struct{ request, answer any }{
	"GET " + wire.PathTask:                   {nil, wire.Task{}},
	"POST " + wire.PathClosures:              {wire.ClosuresRequest{}, wire.ClosuresAnswer{}},
	"GET " + wire.PathCluster:                {nil, wire.Cluster{}},
	"POST " + wire.PathCoordinator:           {closure.SyncRequest{}, closure.SyncAnswer{}},
	"PUT " + wire.PathResult:                 {nil, wire.Done{}},
	"PUT " + wire.PathError:                  {wire.Error{}, wire.Done{}},
	"PUT " + wire.PathProgress:               {wire.Progress{}, wire.Done{}},
	"GET " + wire.PathStop:                   {nil, wire.Stopping{}},
	"POST " + wire.PathStop:                  {wire.Stop{}, wire.Stopping{}},
	"DELETE " + wire.PathStop:                {nil, wire.Stopping{}},
	"POST " + wire.PathBarriers + "{name}":   {wire.Arrive{}, wire.Released{}},
	"DELETE " + wire.PathBarriers + "{name}": {nil, wire.Withdrawn{}},
}

// TestOpenAPI compares openapi.yaml with the server's routes and the types that it reads and
// writes.
func TestOpenAPI(t *testing.T) {
	raw := must.Get(os.ReadFile("openapi.yaml"))(t)
	var d document
	require.NoError(t, yaml.Unmarshal(raw, &d))

	var inServer, inDocument []string
	for path, methods := range routes {
		for m := range methods {
			inServer = append(inServer, m+" "+path)
		}
	}
	seen := map[string]bool{}
	for path, operations := range d.Paths {
		for method, op := range operations {
			if method == "parameters" {
				continue
			}
			route := strings.ToUpper(method) + " " + path
			inDocument = append(inDocument, route)
			var o struct {
				RequestBody content            `json:"requestBody"`
				Responses   map[string]content `json:"responses"`
			}
			b := must.Get(yaml.Marshal(op))(t)
			require.NoError(t, yaml.Unmarshal(b, &o))
			types, ok := described[route]
			require.True(t, ok, route)
			d.same(t, seen, o.RequestBody.schema(), types.request)
			d.same(t, seen, o.Responses["200"].schema(), types.answer)
			assert.Equal(t, "#/components/responses/Failure", o.Responses["default"].Ref, route)
			if types.request != nil {
				assert.Equal(t, false, d.Components.Schemas[o.RequestBody.schema()].AdditionalProperties, "%s refuses other fields", route)
			}
		}
	}
	assert.ElementsMatch(t, inServer, inDocument)
	d.same(t, seen, d.Components.Responses["Failure"].schema(), wire.Failure{})
	assert.ElementsMatch(t, slices.Collect(maps.Keys(d.Components.Schemas)), slices.Collect(maps.Keys(seen)), "all schemas are used")
	for code := range statuses {
		assert.Contains(t, string(raw), code)
	}
}

// same compares a schema, including nested ones, with a type.
func (d document) same(t *testing.T, seen map[string]bool, name string, v any) {
	t.Helper()
	if v == nil {
		assert.Empty(t, name)
		return
	}
	d.sameType(t, seen, name, reflect.TypeOf(v))
}

func (d document) sameType(t *testing.T, seen map[string]bool, name string, typ reflect.Type) {
	t.Helper()
	s, ok := d.Components.Schemas[name]
	require.True(t, ok, "there is no schema %q for %s", name, typ)
	seen[name] = true
	if typ.PkgPath() == reflect.TypeFor[closure.Closure]().PkgPath() {
		name = strings.TrimPrefix(name, "Closure") // Error in the document is a different type
	}
	assert.Contains(t, []string{name, "Closure"}, typ.Name())
	var fields, required []string
	for _, f := range reflect.VisibleFields(typ) {
		if f.Anonymous {
			continue
		}
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, field)
		if options != "omitempty" {
			required = append(required, field)
		}
		p, ok := s.Properties[field]
		if assert.True(t, ok, "%s has no %s", name, field) {
			d.sameField(t, seen, name+"."+field, p, f.Type)
		}
	}
	assert.ElementsMatch(t, fields, slices.Collect(maps.Keys(s.Properties)), name)
	assert.ElementsMatch(t, required, s.Required, name)
}

func (d document) sameField(t *testing.T, seen map[string]bool, where string, s schema, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[json.RawMessage]() {
		return // anything, or a schema that only people can check
	}
	switch typ.Kind() {
	case reflect.Struct:
		d.sameType(t, seen, strings.TrimPrefix(s.Ref, "#/components/schemas/"), typ)
	case reflect.Slice:
		assert.Equal(t, "array", s.Type, where)
		if assert.NotNil(t, s.Items, where) {
			d.sameField(t, seen, where, *s.Items, typ.Elem())
		}
	default:
		want := map[reflect.Kind]string{
			reflect.String: "string", reflect.Int: "integer", reflect.Uint64: "integer", reflect.Float64: "number", reflect.Bool: "boolean", reflect.Map: "object",
		}
		assert.Equal(t, want[typ.Kind()], s.Type, where)
	}
}
