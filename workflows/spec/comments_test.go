package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/must"
)

// The comments on a spec's fields match the table.
func TestCommentsOfFields(t *testing.T) {
	docs := map[string]string{}
	for _, f := range fields {
		docs[f.of] = f.doc
	}
	file := must.Get(parser.ParseFile(token.NewFileSet(), "runspec.go", nil, parser.ParseComments))(t)
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		of, ok := n.(*ast.TypeSpec)
		if !ok || of.Name.Name != "RunSpec" && of.Name.Name != "TaskGroup" {
			return true
		}
		for _, f := range of.Type.(*ast.StructType).Fields.List {
			name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
			seen++
			assert.Equal(t, docs[of.Name.Name+"."+name], strings.Join(strings.Fields(f.Doc.Text()), " "), f.Names[0].Name)
		}
		return false
	})
	assert.Greater(t, seen, 50)
}
