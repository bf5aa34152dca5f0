package sourcecode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/tests/must"
)

// repository returns a work tree with one commit of these files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "x"}, {"config", "user.email", "x@y"}} {
		run(t, dir, args...)
	}
	write(t, dir, files)
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// gathered returns a work tree's state, however slow git is.
func gathered(t *testing.T, dir string) *Source {
	t.Helper()
	var s *Source
	require.Eventually(t, func() bool {
		s = Begin(t.Context(), "/", dir).Result()
		return s == nil || !strings.Contains(s.Note, "took longer")
	}, patience*100, 1)
	return s
}

func TestAWorkTree(t *testing.T) {
	dir := repository(t, map[string]string{"train.py": "a\n", "src/ä b.py": "x\n", "gone.py": "1\n", "same.py": "1\n"})
	clean := gathered(t, filepath.Join(dir, "src"))
	require.NotNil(t, clean)
	head := run(t, dir, "rev-parse", "HEAD")
	assert.Equal(t, &Source{Dir: dir, Commit: head, Branch: "main"}, clean)

	write(t, dir, map[string]string{"train.py": "b\n", "src/ä b.py": "y\n", "-new.py": "", "staged.py": "2\n", "out/1": "", "out/2": ""})
	require.NoError(t, os.Remove(filepath.Join(dir, "gone.py")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero")))
	run(t, dir, "add", "staged.py")
	s := gathered(t, dir)
	digest := func(name string) string { return run(t, dir, "hash-object", "--", name) }
	assert.Equal(t, []File{
		{Name: "gone.py", State: "removed"},
		{Name: "src/ä b.py", State: "changed", Digest: digest("src/ä b.py")},
		{Name: "staged.py", State: "added", Digest: digest("staged.py")},
		{Name: "train.py", State: "changed", Digest: digest("train.py")},
		{Name: "-new.py", State: "untracked", Digest: digest("-new.py")},
		{Name: "out/", State: "untracked"}, {Name: "zero", State: "untracked"},
	}, s.Files)
	assert.Equal(t, []string{
		dir + " at " + head[:10] + " (main)",
		"different: gone.py (removed), src/ä b.py (changed, 975fbec825), staged.py (added, 0cfbf08886), train.py (changed, 6178079822), " +
			"-new.py (untracked, e69de29bb2), out/ (untracked), zero (untracked)",
	}, s.Lines())

	// The workflow's arguments restore it.
	payloads := must.Get(converter.GetDefaultDataConverter().ToPayloads(append([]any{"the spec"}, s.Arguments()...)...))(t)
	assert.Equal(t, s, Of(payloads.GetPayloads()))
	assert.Nil(t, Of(payloads.GetPayloads()[:1]))
	assert.Nil(t, Of([]*commonpb.Payload{{}, {}, {Data: []byte("{}")}}))
	assert.Empty(t, (*Source)(nil).Arguments())
}

func TestManyFiles(t *testing.T) {
	dir, files := repository(t, map[string]string{"a": ""}), map[string]string{}
	for i := range maxFiles + 2 {
		files[fmt.Sprint("f", i)] = ""
	}
	write(t, dir, files)
	s := gathered(t, dir)
	assert.Len(t, s.Files, maxFiles)
	assert.Equal(t, 2, s.More)
	assert.Equal(t, "2 more differ, which are not listed", s.Lines()[2])
}

func TestNoWorkTree(t *testing.T) {
	assert.Nil(t, Begin(t.Context(), t.TempDir(), "/no/such/directory").Result())
	assert.Nil(t, (*Gathering)(nil).Result())
	pretends := t.TempDir()
	write(t, pretends, map[string]string{".git": "gitdir: /no/such\n"})
	assert.Nil(t, gathered(t, pretends))
	empty := t.TempDir()
	run(t, empty, "init", "-q", "-b", "main")
	write(t, empty, map[string]string{"a": ""})
	assert.Equal(t, &Source{Dir: empty, Branch: "main", Files: []File{{Name: "a", State: "untracked", Digest: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}}}, gathered(t, empty))
}

// Git may hang, for example on a network file system. A start must not.
func TestASlowGit(t *testing.T) {
	dir, bin := repository(t, map[string]string{"a": "1\n"}), t.TempDir()
	path := must.Get(exec.LookPath("git"))(t)
	write(t, bin, map[string]string{"git": "#!/bin/sh\ncase $1 in rev-parse) exec " + path + " \"$@\";; esac\nexec sleep 1000\n"})
	require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := Begin(t.Context(), dir).Result()
	if s != nil { // on a very slow machine even the commit comes too late
		assert.Len(t, s.Commit, 40)
		assert.Equal(t, "the changes since the commit are unknown: git took longer than 500ms", s.Note)
	}
}
