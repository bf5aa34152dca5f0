package starter

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

var updateJSON = flag.Bool("update-json", false, "write the tables of help json anew")

// jsonType is a type of a page, and the directory that defines it.
type jsonType struct{ title, dir, name string }

// The pages contain the types' tables.
func TestJSONPages(t *testing.T) {
	t.Parallel()
	jsonPage(t, "json",
		jsonType{"`list --json`: an array of runs", ".", "Summary"},
		jsonType{"`status --json`: a run", "../workflows/outcome", "Status"},
		jsonType{"Each of its `tasks`, with the fields of the next table", "../workflows/outcome", "TaskStatus"},
		jsonType{"A task", "../workflows/spec", "TaskStatus"},
		jsonType{"Each of the `facts`, the most urgent first", "../workflows/outcome", "Fact"},
		jsonType{"Each of the `trials` of a sweep", ".", "Trial"})
	jsonPage(t, "json-result",
		jsonType{"The result of a run", "../workflows/spec", "RunResult"},
		jsonType{"Each of its `tasks`", "../workflows/spec", "TaskResult"},
		jsonType{"An exit", "../workflows/spec", "Exit"},
		jsonType{"`first_failure`, with the fields of its exit", "../workflows/spec", "Failure"})
}

func jsonPage(t *testing.T, name string, types ...jsonType) {
	t.Helper()
	const begin, end = "<!-- begin: made of the Go types -->\n", "<!-- end -->"
	path := "help/topics/reference/" + name + ".md"
	page := must.Get(os.ReadFile(path))(t)
	head, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	var b strings.Builder
	for _, of := range types {
		fmt.Fprintf(&b, "\n## %s\n\n| field | type | meaning |\n| --- | --- | --- |\n", of.title)
		fields := 0
		for _, f := range structOf(t, of.dir, of.name).Fields.List {
			row := jsonRow(f)
			fields += strings.Count(row, "\n")
			b.WriteString(row)
		}
		require.Positive(t, fields, of.name)
	}
	want := head + begin + b.String() + "\n" + end + tail
	if *updateJSON {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(page), "go test ./starter -run TestJSONPages -update-json")
}

func structOf(t *testing.T, dir, name string) *ast.StructType {
	t.Helper()
	files := must.Get(os.ReadDir(dir))(t)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), dir+"/"+file.Name(), nil, parser.ParseComments))(t)
		if o := parsed.Scope.Lookup(name); o != nil && o.Kind == ast.Typ {
			return o.Decl.(*ast.TypeSpec).Type.(*ast.StructType)
		}
	}
	require.Fail(t, "no such type", "%s in %s", name, dir)
	return nil
}

var (
	docLink   = regexp.MustCompile(`\[(?:[A-Za-z]+\.)*([A-Za-z]+)\]`)
	seeClause = regexp.MustCompile(`(?:; see|, see|\(see)\b.*`)
	isOf      = regexp.MustCompile(`^[A-Z]\w+ (?:is|are|has|have|reports?|says?) `)
	sentence  = regexp.MustCompile(`^.*?[^.][.:](?:\s|$)`)
)

// jsonRow returns a field's rows: its JSON name, its type, and the first sentence of its
// documentation.
func jsonRow(f *ast.Field) string {
	if f.Tag == nil {
		return "" // embedded or not exported
	}
	name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
	if name == "-" {
		return ""
	}
	doc := docLink.ReplaceAllString(strings.Join(strings.Fields(f.Doc.Text()), " "), "$1")
	doc = strings.TrimRight(seeClause.ReplaceAllString(sentence.FindString(doc+" "), ""), ".:; ")
	doc = isOf.ReplaceAllString(doc, "")
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, nameOfType(f.Type), strings.ReplaceAll(doc, "|", "\\|"))
}

// nameOfType describes a type as JSON has it.
func nameOfType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return nameOfType(e.X)
	case *ast.ArrayType:
		return "array"
	case *ast.MapType:
		return "object"
	case *ast.SelectorExpr:
		if e.Sel.Name == "Time" {
			return "time"
		}
		return nameOfType(e.Sel)
	case *ast.Ident:
		switch e.Name {
		case "string", "Verdict", "Cause", "RunState", "TaskState", "EndedBy", "Evidence", "Duration", "OnDisconnect", "Kind", "Severity":
			return "string"
		case "int", "int64", "float64":
			return "number"
		case "bool":
			return "boolean"
		}
	}
	return "object"
}
