package tasklog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestLayout(t *testing.T) {
	run := RunDir("/logs", "iris-x7", "0198f2a0-1111-7abc-8def-0123456789ab")
	assert.Equal(t, "/logs/iris-x7/0123456789ab", run)
	assert.Equal(t, "/logs/iris-x7/0123456789ab/attempt_2/13", ProcessDir(run, 2, 13))
}

func TestRunsOfOneMinuteHaveTheirOwnDirectories(t *testing.T) {
	// These are two UUIDs of version 7 that a server made in the same millisecond.
	assert.NotEqual(t,
		RunDir("/logs", "iris", "0198f2a0-1111-7abc-8def-0123456789ab"),
		RunDir("/logs", "iris", "0198f2a0-1111-7abd-8123-4123456789ab"))
}

func TestFileNames(t *testing.T) {
	for text, want := range map[string]string{
		"iris-x7":   "iris-x7",
		"A_b.9":     "A_b.9",
		"":          "%",
		".":         "%2E",
		"..":        "%2E.",
		".hidden":   "%2Ehidden",
		"a/b":       "a%2Fb",
		"a%2Fb":     "a%252Fb",
		"team: é\n": "team%3A%20%C3%A9%0A",
		"zero\x00":  "zero%00",
	} {
		assert.Equal(t, want, fileName(text), "%q", text)
	}
	long := strings.Repeat("x", 1000)
	assert.NotEqual(t, fileName(long+"1"), fileName(long+"2"))
	assert.LessOrEqual(t, len(fileName(long)), maxFileName)
	assert.Equal(t, strings.Repeat("x", maxFileName), fileName(long[:maxFileName]))
}

func FuzzFileNames(f *testing.F) {
	f.Add("a/b", "a%2Fb")
	f.Add("", "%")
	f.Add(strings.Repeat("/", 90), strings.Repeat("/", 91))
	f.Fuzz(func(t *testing.T, a, b string) {
		name := fileName(a)
		assert.True(t, name != "." && name != ".." && name != "" && len(name) < 255 && !strings.ContainsAny(name, "/\x00"), "%q", name)
		assert.Equal(t, a == b, name == fileName(b))
	})
}

func TestMakeDir(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "new", "deep")
	require.NoError(t, MakeDir(dir))
	assert.DirExists(t, dir)
	require.NoError(t, MakeDir(dir), "it may be there")

	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.EqualError(t, MakeDir(file), file+" is a file")
	assert.EqualError(t, MakeDir(filepath.Join(file, "below", "it")), file+" is a file")
}

func TestAttempts(t *testing.T) {
	run := t.TempDir()
	for _, p := range [][2]int{{0, 0}, {2, 0}, {10, 0}, {1, 3}} {
		require.NoError(t, MakeDir(ProcessDir(run, p[0], p[1])))
	}
	byRank := must.Get(Attempts(run))(t)
	assert.Equal(t, map[int][]int{0: {0, 2, 10}, 3: {1}}, byRank)
	byRank = must.Get(Attempts(filepath.Join(run, "missing")))(t)
	assert.Empty(t, byRank)
}

func TestPrune(t *testing.T) {
	run := t.TempDir()
	for n := range 12 {
		require.NoError(t, MakeDir(ProcessDir(run, n, 3)))
		require.NoError(t, os.WriteFile(filepath.Join(ProcessDir(run, n, 3), StdoutFile), []byte("x"), 0o600))
	}
	require.NoError(t, MakeDir(ProcessDir(run, 0, 1)))
	require.NoError(t, MakeDir(filepath.Join(run, "attempt_007")), "none of ours")

	require.NoError(t, Prune(run, 3, 2))
	var left []string
	dirs := must.Get(filepath.Glob(filepath.Join(run, "*", "*")))(t)
	for _, d := range dirs {
		rel := must.Get(filepath.Rel(run, d))(t)
		left = append(left, rel)
	}
	assert.ElementsMatch(t, []string{"attempt_0/1", "attempt_0/3", "attempt_10/3", "attempt_11/3"}, left)
	numbers := must.Get(attempts(run))(t)
	assert.Equal(t, []int{0, 10, 11}, numbers, "empty attempts are gone")

	require.NoError(t, Prune(run, 3, 0))
	assert.DirExists(t, ProcessDir(run, 0, 3), "and the first")
	assert.DirExists(t, ProcessDir(run, 11, 3), "the newest stays in any case")
	assert.NoDirExists(t, ProcessDir(run, 10, 3))
	require.NoError(t, Prune(filepath.Join(run, "missing"), 3, 1))
}

func TestPruned(t *testing.T) {
	several := func(first, last int) []int {
		numbers := []int{0}
		for n := first; n <= last; n++ {
			numbers = append(numbers, n)
		}
		return numbers
	}
	from, to, ok := Pruned(several(12, 31))
	assert.True(t, ok)
	assert.Equal(t, []int{1, 11}, []int{from, to})
	_, _, ok = Pruned(several(1, 20))
	assert.False(t, ok)
	_, _, ok = Pruned(several(3, 4))
	assert.False(t, ok, "the generations of a group may begin anywhere")
	_, _, ok = Pruned(nil)
	assert.False(t, ok)
}

func TestSplitProcessDir(t *testing.T) {
	runDir, n, rank, ok := SplitProcessDir(ProcessDir("/logs/iris/e", 12, 3))
	assert.True(t, ok)
	assert.Equal(t, "/logs/iris/e", runDir)
	assert.Equal(t, 12, n)
	assert.Equal(t, 3, rank)
	for _, dir := range []string{"", "/", "3", "/logs/3", "/logs/attempt_x/3", "/logs/attempt_1/ps", "/logs/attempt_01/3"} {
		_, _, _, ok := SplitProcessDir(dir)
		assert.False(t, ok, dir)
	}
}
