package source

import (
	"fmt"
	"math/rand/v2"
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

// gathered returns the state of a work tree, however slow git is.
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
	dir := repository(t, map[string]string{"train.py": "a\nb\nc\n", "src/ä b.py": "x\n", "data.bin": "\x00\x01", "config.json": "{\n  \"api_token\": \"abc\"\n}\n", "same.py": "1\n"})
	clean := gathered(t, filepath.Join(dir, "src"))
	require.NotNil(t, clean)
	head := run(t, dir, "rev-parse", "HEAD")
	assert.Equal(t, &Source{Dir: dir, Commit: head, Branch: "main"}, clean)

	write(t, dir, map[string]string{
		"train.py": "a\nB\nc\nd\npassword = \"hunter22\"\nn_tokens = count()\n", "src/ä b.py": "y\n", "data.bin": "\x00\x02", "new.py": "", "out/1": "", "out/2": "",
		"config.json": "{\n  \"api_token\": \"1234567890\"\n}\n",
	})
	s := gathered(t, dir)
	assert.Equal(t, []File{
		{Name: "config.json", Added: 1, Removed: 1}, {Name: "data.bin", Binary: true}, {Name: "src/ä b.py", Added: 1, Removed: 1}, {Name: "train.py", Added: 4, Removed: 1},
	}, s.Files)
	assert.Equal(t, []string{"new.py", "out/"}, s.Untracked)
	assert.Contains(t, s.Patch, "+B\n")
	assert.Contains(t, s.Patch, "+password = \"(perhaps a secret)\"\n")
	assert.Contains(t, s.Patch, "+n_tokens = count()\n", "code is no secret")
	assert.NotContains(t, s.Patch, "1234567890")
	assert.Equal(t, []string{
		dir + " at " + head[:10] + " (main)",
		"changed since: config.json (+1 −1), data.bin (binary), src/ä b.py (+1 −1), train.py (+4 −1)",
		"2 untracked files: new.py, out/",
	}, s.Lines())

	onlyA, onlyB := Between(clean, s, "train.py")
	assert.Equal(t, []string{"b"}, onlyA)
	assert.Equal(t, []string{"B", "d", `password = "(perhaps a secret)"`, "n_tokens = count()"}, onlyB)
	assert.Equal(t, []string{"config.json", "data.bin", "src/ä b.py", "train.py"}, Names(clean, s))

	// The workflow's arguments bring it back.
	payloads := must.Get(converter.GetDefaultDataConverter().ToPayloads(append([]any{"the spec"}, s.Arguments()...)...))(t)
	assert.Equal(t, s, Of(payloads.GetPayloads()))
	assert.Nil(t, Of(payloads.GetPayloads()[:1]))
	assert.Nil(t, Of([]*commonpb.Payload{{}, {}, {Data: []byte("{}")}}))
	payloads = must.Get(converter.GetDefaultDataConverter().ToPayloads(append([]any{"the spec"}, clean.Arguments()...)...))(t)
	assert.Equal(t, clean, Of(payloads.GetPayloads()))
	assert.Empty(t, (*Source)(nil).Arguments())
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
	assert.Equal(t, &Source{Dir: empty, Branch: "main", Untracked: []string{"a"}}, gathered(t, empty))
}

// Git may hang, as on a network file system. A start does not.
func TestASlowGit(t *testing.T) {
	dir, bin := repository(t, map[string]string{"a": "1\n"}), t.TempDir()
	path := must.Get(exec.LookPath("git"))(t)
	write(t, bin, map[string]string{"git": "#!/bin/sh\ncase $1 in rev-parse) exec " + path + " \"$@\";; esac\nexec sleep 1000\n"})
	require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := Begin(t.Context(), dir).Result()
	if s != nil { // on a very slow machine even the commit comes too late
		assert.Len(t, s.Commit, 40)
		assert.Equal(t, "the changes since the commit are not known: git took longer than 500ms", s.Note)
	}
}

// The largest files are left out of a difference that is too large, and of a private key all.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	part := func(name string, lines int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -0,0 +1 @@\n", name)
		for range lines {
			fmt.Fprintf(&b, "+%x\n", r.Uint64())
		}
		return b.String()
	}
	s := &Source{}
	s.take(part("small", 3) + part("large", 100_000) + part("id_rsa", 1) + part("key", 1) + "+-----BEGIN RSA PRIVATE KEY-----\n")
	assert.Equal(t, []File{{Name: "small", Added: 3}, {Name: "large", Added: 100_000, Omitted: true}, {Name: "id_rsa", Added: 1, Omitted: true}, {Name: "key", Added: 2, Omitted: true}}, s.Files)
	assert.Equal(t, "the difference is too large: the content of 1 of 4 files is left out", s.Note)
	assert.LessOrEqual(t, len(s.pack()), maxPacked)
	assert.Equal(t, 3, strings.Count(s.Patch, leftOut))
	assert.Contains(t, s.Patch, "+++ b/small\n@@ -0,0 +1 @@\n+")

	many := &Source{}
	var b strings.Builder
	for i := range 2000 {
		b.WriteString(part(fmt.Sprint("f", i), 1))
	}
	many.take(b.String())
	assert.Len(t, many.Files, 1000)
	assert.Equal(t, "1000 more files are changed", many.Note)
}

func TestSecrets(t *testing.T) {
	s := section{name: "a.yaml"}
	for line, want := range map[string]string{
		"+password: hunter22\n":              "+password: (perhaps a secret)\n",
		"+url = postgres://me:pw@db/x\n":     "+(perhaps a secret)\n",
		"-x = \"ghp_0123456789abcdef\"\n":    "-(perhaps a secret)\n",
		"+os.environ[\"API_KEY\"] = 'abc'\n": "+os.environ[\"API_KEY\"] = '(perhaps a secret)'\n",
		"+rate: 3\n":                         "+rate: 3\n",
		" unchanged\n":                       " unchanged\n",
		"+\n":                                "+\n",
	} {
		assert.Equal(t, want, s.hide(line))
	}
	s.name = "a.py"
	assert.Equal(t, "+secret_tokens = tokenize(x)\n", s.hide("+secret_tokens = tokenize(x)\n"))
}

// Any answer of git is taken without a mistake.
func FuzzPatch(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nBinary files a and b differ\n")
	f.Add("diff --git \n@@ \n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := &Source{}
		s.take(text)
		for _, name := range Names(s, s) {
			a, b := Between(s, s, name)
			require.Empty(t, a)
			require.Empty(t, b)
			Between(s, &Source{}, name)
		}
		s.Lines()
		(&Source{}).read(text)
	})
}
