package spec

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
)

// contract lists the types that cross the wire: inputs, results and details of
// workflows, queries, updates, activities and errors.
var contract = []reflect.Type{
	reflect.TypeFor[RunSpec](),
	reflect.TypeFor[RunResult](),
	reflect.TypeFor[Status](),
	reflect.TypeFor[Heartbeat](),
	reflect.TypeFor[Task](),
	reflect.TypeFor[TaskRequest](),
	reflect.TypeFor[TerminateAllRequest](),
	reflect.TypeFor[SignalRequest](),
	reflect.TypeFor[StartTaskRequest](),
	reflect.TypeFor[StopRequest](),
	reflect.TypeFor[RequestAnswer](),
	reflect.TypeFor[TaskProblem](),
	reflect.TypeFor[TogetherRequest](),
	reflect.TypeFor[ClearStopRequest](),
	reflect.TypeFor[Stopping](),
	reflect.TypeFor[BarrierInput](),
	reflect.TypeFor[BarrierMessage](),
	reflect.TypeFor[BarrierResult](),
	reflect.TypeFor[BarrierStatus](),
	reflect.TypeFor[BarrierCheckInput](),
	reflect.TypeFor[BarrierCheckOutput](),
	reflect.TypeFor[InvalidSpecError](),
	reflect.TypeFor[InvalidRequestError](),
}

// TestContract holds every name on the wire against the golden file. A name
// that changes or goes breaks runs that are open, programs and other versions;
// one that is added is fine, if old readers may ignore it.
func TestContract(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Every name that crosses the wire. Written by TestContract; see there before changing it.\n")
	b.WriteString("\n## Constants\n\n")
	for _, line := range stringConstants(t) {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "\n## Queues of the queue q\n\n%s\n%s\n%s\n", HostsQueue("q"), HostQueue("q", "host"), InstanceQueue("q", "host", "instance"))
	seen := map[reflect.Type]bool{}
	for _, typ := range contract {
		writeType(&b, typ, seen)
	}
	golden(t, "testdata/contract.golden", b.String())
}

func TestQueues(t *testing.T) {
	require.Equal(t, "clusterrun/hosts", HostsQueue(TaskQueue))
	require.Equal(t, "clusterrun/host/a", HostQueue(TaskQueue, "a"))
	require.Equal(t, "clusterrun/host/a/i", InstanceQueue(TaskQueue, "a", "i"))
}

// writeType lists the fields of a struct, and those of the structs in it once.
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

// stringConstants lists the exported constants of the package that are texts,
// in the order of files and lines, so that none can be forgotten here.
func stringConstants(t *testing.T) []string {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	info := types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	// It complains about every import, which texts do not need.
	_, _ = config.Check("spec", fset, files, &info)
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
