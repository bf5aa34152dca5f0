package tests

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

var update = flag.Bool("update", false, "write the last column of behaviours.md anew")

var (
	// behaviour matches a behavior's ID, or the first and last of several.
	behaviour  = regexp.MustCompile(`\b(SEED|CC|TE|MPR|CO)-(\d\d)(?: to (SEED|CC|TE|MPR|CO)-(\d\d))?\b`)
	row        = regexp.MustCompile(`(?m)^\| ((?:SEED|CC|TE|MPR|CO)-\d\d) \| (.*?) \|.*\|$`)
	pythonTest = regexp.MustCompile(`(?m)^ *def (test_\w+)`)
)

// behaviours.md lists all behaviors named in tests. Each has one test, in the lowest layer that can
// fail for it. A second test is redundant.
func TestBehaviours(t *testing.T) {
	const name = "behaviours.md"
	text := must.Get(os.ReadFile(name))(t)
	shown, inTable := behavioursShown(t), map[string]bool{}
	written := row.ReplaceAllStringFunc(string(text), func(line string) string {
		m := row.FindStringSubmatch(line)
		id, sentence := m[1], m[2]
		assert.False(t, inTable[id], "%s is there twice", id)
		assert.Len(t, shown[id], 1, "one test names %s", id)
		inTable[id] = true
		return fmt.Sprintf("| %s | %s | %s |", id, sentence, strings.Join(slices.Sorted(maps.Keys(shown[id])), ", "))
	})
	for id, tests := range shown {
		assert.True(t, inTable[id], "%s says nothing of %s, which is named in %v", name, id, slices.Sorted(maps.Keys(tests)))
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(written), 0o644))
		return
	}
	assert.True(t, written == string(text), "%s is out of date: go test ./tests -run Behaviours -update", name)
}

// behavioursShown returns the tests that name each behavior: a test function, or a script's file.
func behavioursShown(t *testing.T) map[string]map[string]bool {
	t.Helper()
	shown := map[string]map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != ".." && (strings.HasPrefix(e.Name(), ".") || path == filepath.Join("..", "bin")) {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".py", ".txt", ".txtar"}, filepath.Ext(path)) {
			return nil
		}
		text := must.Get(os.ReadFile(path))(t)
		path = filepath.ToSlash(path)[len("../"):]
		matches := behaviour.FindAllStringSubmatchIndex(string(text), -1)
		if matches == nil {
			return nil
		}
		tests := testsOf(t, path, string(text))
		for _, at := range matches {
			assert.True(t, isTest(path), "%s names %s: only tests name behaviours", path, text[at[0]:at[1]])
			where := path
			if i := slices.IndexFunc(tests, func(s span) bool { return s.begin <= at[0] && at[0] < s.end }); i >= 0 {
				where = tests[i].name
			}
			for _, id := range behavioursIn(string(text[at[0]:at[1]])) {
				if shown[id] == nil {
					shown[id] = map[string]bool{}
				}
				shown[id][where] = true
			}
		}
		return nil
	}))
	return shown
}

func isTest(path string) bool {
	return strings.HasPrefix(path, "tests/") || strings.Contains(path, "/testdata/") ||
		strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "test_")
}

// behavioursIn returns the IDs in a match.
func behavioursIn(match string) []string {
	m := behaviour.FindStringSubmatch(match)
	first, _ := strconv.Atoi(m[2])
	last := first
	if m[3] == m[1] {
		last, _ = strconv.Atoi(m[4])
	}
	var ids []string
	for n := first; n <= last; n++ {
		ids = append(ids, fmt.Sprintf("%s-%02d", m[1], n))
	}
	return ids
}

// span is a test, from its comment to its end.
type span struct {
	begin, end int
	name       string
}

// testsOf returns a file's tests. A script is one test.
func testsOf(t *testing.T, path, text string) (tests []span) {
	t.Helper()
	switch filepath.Ext(path) {
	case ".go":
		files := token.NewFileSet()
		file := must.Get(parser.ParseFile(files, path, text, parser.ParseComments))(t)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			begin := f.Pos()
			if f.Doc != nil {
				begin = f.Doc.Pos()
			}
			tests = append(tests, span{files.Position(begin).Offset, files.Position(f.End()).Offset, filepath.ToSlash(filepath.Dir(path)) + "." + f.Name.Name})
		}
	case ".py":
		for _, at := range pythonTest.FindAllStringSubmatchIndex(text, -1) {
			if n := len(tests); n > 0 {
				tests[n-1].end = at[0]
			}
			tests = append(tests, span{at[0], len(text), path + ":" + text[at[2]:at[3]]})
		}
	}
	return tests
}
