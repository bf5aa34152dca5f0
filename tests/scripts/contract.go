package scripts

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// Contract lists the exported string constants of the package in this directory, and the fields of
// types. between follows the constants.
func Contract(t *testing.T, between string, all []reflect.Type) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Every name that crosses the wire. Written by TestContract; see there before changing it.\n")
	b.WriteString("\n## Constants\n\n")
	for _, line := range stringConstants(t) {
		b.WriteString(line + "\n")
	}
	b.WriteString(between)
	seen := map[reflect.Type]bool{}
	for _, typ := range all {
		writeType(&b, typ, seen)
	}
	return b.String()
}

// writeType lists the fields of a struct and its nested structs, each struct once.
func writeType(b *strings.Builder, typ reflect.Type, seen map[reflect.Type]bool) {
	if seen[typ] {
		return
	}
	seen[typ] = true
	fmt.Fprintf(b, "\n## %s\n\n", typ.Name())
	var inner []reflect.Type
	for i := range typ.NumField() {
		f := typ.Field(i)
		fmt.Fprintf(b, "%-32s %s\n", f.Tag.Get("json"), f.Type)
		e := f.Type
		for e.Kind() == reflect.Pointer || e.Kind() == reflect.Slice || e.Kind() == reflect.Map {
			e = e.Elem()
		}
		if e.Kind() == reflect.Struct && e.PkgPath() == typ.PkgPath() {
			inner = append(inner, e)
		}
	}
	for _, e := range inner {
		writeType(b, e, seen)
	}
}

// stringConstants lists the package's exported string constants, in source order, so that none can
// be forgotten.
func stringConstants(t *testing.T) []string {
	t.Helper()
	fset := token.NewFileSet()
	paths := must.Get(filepath.Glob("*.go"))(t)
	var files []*ast.File
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			file := must.Get(parser.ParseFile(fset, path, nil, parser.SkipObjectResolution))(t)
			files = append(files, file)
		}
	}
	info := types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	// It complains about every import, but strings do not need imports.
	_, _ = config.Check("here", fset, files, &info)
	var lines []string
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if _, inFunc := n.(*ast.FuncDecl); inFunc {
				return false
			}
			vs, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for _, name := range vs.Names {
				c, ok := info.Defs[name].(*types.Const)
				if !ok || !name.IsExported() || !strings.HasPrefix(c.Val().ExactString(), `"`) {
					continue
				}
				lines = append(lines, fmt.Sprintf("%-32s %s", c.Name(), c.Val().ExactString()))
			}
			return true
		})
	}
	require.NotEmpty(t, lines)
	return lines
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }
