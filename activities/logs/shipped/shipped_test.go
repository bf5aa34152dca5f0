package shipped

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// tree writes files: a name that ends in a slash is a directory, one that ends in * is executable,
// and "a -> b" is a symbolic link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, strings.TrimSuffix(name, "*"))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case isLink:
			require.NoError(t, os.Symlink(target, path))
		case strings.HasSuffix(name, "/"):
			require.NoError(t, os.MkdirAll(path, 0o755))
		case strings.HasSuffix(name, "*"):
			require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
		default:
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	return dir
}

// names lists the contents of a directory in the form that tree accepts.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		switch {
		case d.IsDir():
			name += "/"
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			name += " -> " + target
		case info.Mode()&0o100 != 0:
			name += "*"
		}
		list = append(list, name)
		return nil
	}))
	return list
}

func pack(t *testing.T, dir string, o Options) *Archive {
	t.Helper()
	a, err := Pack(t.Context(), dir, t.TempDir(), o)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

func key(id string) runkey.Run {
	return runkey.Run{Namespace: "default", WorkflowID: id, RunID: "0199-" + id}
}

func TestPackAndUnpack(t *testing.T) {
	files := map[string]string{
		"train.py": "print(1)\n", "bin/run*": "#!/bin/sh\n", "empty/": "", "lib/a.py": "", "latest -> lib/a.py": "", "lib/up -> ../train.py": "",
		"missing -> not/there": "", strings.Repeat("long/", 40) + "name": strings.Repeat("x", 1000),
	}
	a, b := pack(t, tree(t, files), Options{}), pack(t, tree(t, files), Options{})
	assert.Equal(t, a.Archive, b.Archive, "the same content is the same archive")
	assert.Equal(t, 7, a.Files)
	sum := sha256.New()
	n, err := io.Copy(sum, a.Reader())
	require.NoError(t, err)
	assert.EqualValues(t, a.Size, n)
	assert.Equal(t, a.Digest, hex.EncodeToString(sum.Sum(nil)))

	s := Open(t.TempDir())
	require.NoError(t, s.Put(a.Archive, a.Reader()))
	var last int64
	require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(n int64) { last = n }))
	assert.EqualValues(t, a.Size, last)
	dir := s.Dir(key("iris"))
	assert.Equal(t, names(t, tree(t, files)), names(t, dir))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	content, err := os.ReadFile(filepath.Join(dir, "train.py"))
	require.NoError(t, err)
	assert.Equal(t, "print(1)\n", string(content))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "out"), nil, 0o600))
	require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, nil), "the next generation has what the last one wrote")
	assert.FileExists(t, filepath.Join(dir, "out"))
	require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key("other"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {}))
	assert.NoFileExists(t, filepath.Join(s.Dir(key("other")), "out"), "each run has its own")
}

// A file that a run wrote to its directory is not executed for another run.
func TestDirectoryIsOfOneRunAndOneSpec(t *testing.T) {
	s := Open(t.TempDir())
	evil, good := pack(t, tree(t, map[string]string{"train.sh": "evil"}), Options{}), pack(t, tree(t, map[string]string{"train.sh": "good"}), Options{})
	require.NoError(t, s.Put(evil.Archive, evil.Reader()))
	require.NoError(t, s.Put(good.Archive, good.Reader()))
	unpackFor := func(run runkey.Run, a spec.Archive, statement string) error {
		return s.Unpack(t.Context(), Unpacked{Run: run, Digest: a.Digest, Statement: statement}, int64(a.Size), nil, func(int64) {})
	}
	require.NoError(t, unpackFor(key("iris"), evil.Archive, "mine"))
	require.NoError(t, unpackFor(key("iris"), evil.Archive, "mine"), "the next generation")
	otherNamespace := key("iris")
	otherNamespace.Namespace = "other"
	for want, err := range map[string]error{
		"with different content": unpackFor(key("iris"), good.Archive, "mine"),
		"for another spec":       unpackFor(key("iris"), evil.Archive, "alice's"),
		"of another run":         unpackFor(otherNamespace, evil.Archive, "mine"),
	} {
		var taken *TakenError
		require.ErrorAs(t, err, &taken, want)
		assert.ErrorContains(t, err, want)
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(s.Dir(key("iris")), 65534, 65534))
		assert.ErrorContains(t, unpackFor(key("iris"), evil.Archive, "mine"), "as another user's")
		require.NoError(t, os.Lchown(s.Dir(key("iris")), 0, 0))
	}
	require.NoError(t, os.Remove(s.Dir(key("iris"))+".json"))
	assert.ErrorContains(t, unpackFor(key("iris"), evil.Archive, "mine"), "of an unknown run")
}

func TestWhatStaysBehind(t *testing.T) {
	files := map[string]string{
		".git/HEAD": "", ".gitignore": "# comment\n*.ckpt\n/data/\n\n!keep.ckpt\r\n", "train.py": "", "a.ckpt": "", "keep.ckpt": "",
		"data/big": "", "src/data/small": "", "src/.gitignore": "tmp\n", "src/tmp/x": "", "tmp/y": "", "sub/.git": "gitdir: elsewhere",
	}
	for _, c := range []struct {
		dir     string
		exclude []string
		want    []string
	}{
		{".", nil, []string{".gitignore", "keep.ckpt", "src/", "src/.gitignore", "src/data/", "src/data/small", "sub/", "tmp/", "tmp/y", "train.py"}},
		{".", []string{"/src", "!*.ckpt", ".gitignore", "sub"}, []string{"a.ckpt", "keep.ckpt", "tmp/", "tmp/y", "train.py"}},
		{"src", []string{"/data"}, []string{".gitignore"}},
		{"data", nil, []string{"big"}}, // the path was given explicitly
	} {
		a := pack(t, filepath.Join(tree(t, files), c.dir), Options{Exclude: c.exclude})
		s := Open(t.TempDir())
		require.NoError(t, s.Put(a.Archive, a.Reader()))
		require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {}))
		assert.Equal(t, c.want, names(t, s.Dir(key("iris"))), "%s without %q", c.dir, c.exclude)
	}
}

// A pattern matches the same paths as in git check-ignore.
func TestPatterns(t *testing.T) {
	dir := t.TempDir()
	git := func(input string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		out, _ := cmd.CombinedOutput() // fails if it names none
		return string(out)
	}
	git("", "init", "-q")
	paths := []string{"a", "a.ckpt", "sub/a", "sub/a.ckpt", "sub/deep/a", "s[u]b/a", "[a]", "a*", " a ", "!a", "#a", "ab/a", "b"}
	for _, line := range []string{
		"a", "/a", "*.ckpt", "/*.ckpt", "sub/", "a/", "sub/a", "sub/*", "sub/**", "**/a", "sub/**/a", "**/deep/**", "[ab]", "[!a]", "[^a]", "?", "*", "**", "a**", `a\*`, `\[a]`,
		`\!a`, `\#a`, "s?b/a", "sub/*/a", "*/a", "a  ", `\ a\ `, "[", "sub//a",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(line+"\n"), 0o600))
		named := strings.Split(git(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin"), "\x00")
		g := &ignored{}
		require.NoError(t, g.read(strings.NewReader(line), nil))
		for _, name := range paths {
			elements := strings.Split(name, "/")
			left := false // or in a directory that is not packed
			for i := range elements {
				left = left || g.has(strings.Join(elements[:i+1], "/"), i < len(elements)-1)
			}
			assert.Equal(t, slices.Contains(named, name), left, "%s for %q", name, line)
		}
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	for link, why := range map[string]string{
		"etc -> /etc/passwd":           "the symbolic link etc -> /etc/passwd points outside the directory",
		"up -> ../x":                   "the symbolic link up -> ../x points outside the directory",
		"a/b -> ../../x":               "the symbolic link a/b -> ../../x points outside the directory",
		"loop -> loop":                 "the symbolic link loop -> loop points outside the directory",
		"a/way -> ../a/round/../..":    "the symbolic link a/way -> ../a/round/../.. points outside the directory",
		"a/self -> /proc/self/cwd/a/b": "the symbolic link a/self",
	} {
		dir := tree(t, map[string]string{link: "", "a/round -> ..": ""})
		_, err := Pack(t.Context(), dir, t.TempDir(), Options{})
		assert.ErrorContains(t, err, why)
	}

	dir := tree(t, map[string]string{"x": ""})
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	_, err := Pack(t.Context(), dir, t.TempDir(), Options{})
	assert.ErrorContains(t, err, "pipe is not a file, a directory or a symbolic link; exclude it")
	_, err = Pack(t.Context(), dir, t.TempDir(), Options{Exclude: []string{"pipe"}})
	assert.NoError(t, err)

	_, err = Pack(t.Context(), filepath.Join(dir, "x"), t.TempDir(), Options{})
	assert.ErrorContains(t, err, "x: not a directory")
	_, err = Pack(t.Context(), filepath.Join(dir, "y"), t.TempDir(), Options{})
	assert.ErrorIs(t, err, fs.ErrNotExist)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	tmp := t.TempDir()
	_, err = Pack(stopped, tree(t, map[string]string{"x": ""}), tmp, Options{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, names(t, tmp))
}

func TestTooLarge(t *testing.T) {
	dir := tree(t, map[string]string{
		"big.bin": strings.Repeat("x", 3<<20), "data/one": strings.Repeat("x", 1<<20), "data/two": strings.Repeat("x", 1<<20), "train.py": "",
	})
	_, err := Pack(t.Context(), dir, t.TempDir(), Options{Limit: 4 << 20})
	assert.ErrorContains(t, err, dir+" has 5.0 MiB in 4 files, but at most 4.0 MiB can be shipped; exclude what the hosts do not need, or raise the limit; "+
		"the largest: big.bin 3.0 MiB, data/ 2.0 MiB, data/one 1.0 MiB, data/two 1.0 MiB, train.py 512 bytes")
	_, err = Pack(t.Context(), dir, t.TempDir(), Options{Limit: 4 << 20, Exclude: []string{"/data"}})
	assert.NoError(t, err)
}

// tarOf makes an archive of any entries, and returns it with its digest.
func tarOf(t testing.TB, headers ...tar.Header) ([]byte, spec.Archive) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := strings.Repeat("x", int(h.Size))
		require.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, content)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes(), archiveOf(b.Bytes())
}

func archiveOf(b []byte) spec.Archive {
	sum := sha256.Sum256(b)
	return spec.Archive{Digest: hex.EncodeToString(sum[:]), Size: len(b)}
}

// hostile returns archives that Pack does not make.
func hostile(t testing.TB) map[string][]byte {
	all := map[string][]tar.Header{
		"a name from above":      {{Name: "../evil", Typeflag: tar.TypeReg, Size: 1}},
		"an absolute name":       {{Name: "/tmp/evil", Typeflag: tar.TypeReg, Size: 1}},
		"a name with dots in it": {{Name: "a/../../evil", Typeflag: tar.TypeReg, Size: 1}},
		"through a link": {
			{Name: "out", Linkname: "..", Typeflag: tar.TypeSymlink}, {Name: "out/evil", Typeflag: tar.TypeReg, Size: 1},
		},
		"through an absolute link": {
			{Name: "out", Linkname: "/tmp", Typeflag: tar.TypeSymlink}, {Name: "out/evil", Typeflag: tar.TypeReg, Size: 1},
		},
		"a link that later ones lead outside": {
			{Name: "out", Linkname: "here/..", Typeflag: tar.TypeSymlink}, {Name: "here", Linkname: ".", Typeflag: tar.TypeSymlink},
		},
		"over a link": {
			{Name: "out", Linkname: "../evil", Typeflag: tar.TypeSymlink}, {Name: "out", Typeflag: tar.TypeReg, Size: 1},
		},
		"a hard link": {{Name: "evil", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}},
		"a device":    {{Name: "evil", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"itself":      {{Name: "./", Typeflag: tar.TypeDir}},
	}
	archives := map[string][]byte{"no tar file": bytes.Repeat([]byte("no"), 512), "a terabyte in a few blocks": sparse(t)}
	for name, headers := range all {
		archives[name], _ = tarOf(t, headers...)
	}
	return archives
}

// sparse makes an archive with a file that is a single hole.
func sparse(t testing.TB) []byte {
	var records string
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=evil", "GNU.sparse.realsize=1099511627776"} {
		records += fmt.Sprintf("%d %s\n", len(r)+4, r) // all of them have two digits
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, content := range []string{records, "0\n" + strings.Repeat("\x00", block-2)} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: int64(len(content)), Format: tar.FormatUSTAR}))
		_, err := io.WriteString(w, content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	head := b.Bytes()[:block]
	head[156] = tar.TypeXHeader // instead of a file; this changes the sum
	sum := int64(0)
	for i, c := range head {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b.Bytes()
}

func TestHostileArchives(t *testing.T) {
	for name, b := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			s, a := Open(state), archiveOf(b)
			require.NoError(t, s.Put(a, bytes.NewReader(b)))
			before := names(t, state)
			require.Error(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {}))
			assert.Subset(t, append(before, "shipped/runs/", "shipped/runs/iris/"), names(t, state), "nothing is left")
		})
	}
}

// FuzzUnpack checks that archives never make Unpack write outside its directory.
func FuzzUnpack(f *testing.F) {
	for _, b := range hostile(f) {
		f.Add(b)
	}
	good, _ := tarOf(f, tar.Header{Name: "a/", Typeflag: tar.TypeDir}, tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 3}, tar.Header{Name: "c", Linkname: "a/b", Typeflag: tar.TypeSymlink})
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "dir")
		require.NoError(t, os.Mkdir(dir, 0o700))
		err := unpack(t.Context(), bytes.NewReader(b), int64(len(b)), dir)
		entries, readErr := os.ReadDir(outer)
		require.NoError(t, readErr)
		require.Len(t, entries, 1, "something was written outside")
		if err != nil {
			return
		}
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		require.NoError(t, fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type() == fs.ModeSymlink {
				_, err = root.Stat(name)
				if errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
			}
			return err
		}), "a link leads outside")
	})
}

func TestWrongDigest(t *testing.T) {
	state := t.TempDir()
	s := Open(state)
	b, a := tarOf(t, tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 2000})
	wrong := slices.Clone(b)
	wrong[600]++
	var mismatch *DigestError
	require.ErrorAs(t, s.Put(a, bytes.NewReader(wrong)), &mismatch)
	require.ErrorContains(t, s.Put(a, bytes.NewReader(append(wrong, 0))), "the archive exceeds its")
	require.ErrorAs(t, s.Put(a, bytes.NewReader(b[:1000])), &mismatch, "cut off")
	assert.False(t, s.Has(a.Digest))
	assert.Equal(t, []string{"shipped/", "shipped/archives/", "shipped/new/"}, names(t, state), "nothing is left")

	// Here the archive was damaged after it was checked.
	require.NoError(t, s.Put(a, bytes.NewReader(b)))
	require.NoError(t, os.WriteFile(s.archive(a.Digest), wrong, 0o600))
	require.ErrorAs(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {}), &mismatch)
	assert.False(t, s.Has(a.Digest), "it is fetched again")
	assert.NoDirExists(t, s.Dir(key("iris")))

	in, err := s.Create(a)
	require.NoError(t, err)
	defer in.Close()
	_, err = in.Write(wrong)
	require.NoError(t, err)
	require.ErrorAs(t, in.Commit(), &mismatch)
	require.NoError(t, in.Reset())
	_, err = in.Write(b)
	require.NoError(t, err)
	require.NoError(t, in.Commit(), "another source has the right one")
	require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {}))
}

func TestUnpackIsGivenUp(t *testing.T) {
	state := t.TempDir()
	s := Open(state)
	b, a := tarOf(t, tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1 << 20}, tar.Header{Name: "y", Typeflag: tar.TypeReg, Size: 1})
	require.NoError(t, s.Put(a, bytes.NewReader(b)))
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, s.Unpack(ctx, Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) { cancel() }), context.Canceled)
	assert.Empty(t, names(t, s.unfinished()))
	assert.True(t, s.Has(a.Digest), "the archive is good")
	require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {}))
}

func TestFullDisk(t *testing.T) {
	state := t.TempDir()
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	s := Open(state)
	b, a := tarOf(t, tar.Header{Name: "big", Typeflag: tar.TypeReg, Size: 2 << 20})
	err := s.Put(a, bytes.NewReader(b))
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, s.unfinished())
	assert.Empty(t, names(t, s.unfinished()))

	b, a = tarOf(t, tar.Header{Name: "half", Typeflag: tar.TypeReg, Size: 700 << 10})
	require.NoError(t, s.Put(a, bytes.NewReader(b)))
	err = s.Unpack(t.Context(), Unpacked{Run: key("iris"), Digest: a.Digest}, int64(a.Size), nil, func(int64) {})
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, state)
	assert.Empty(t, names(t, s.unfinished()), "no half directory is left")
	assert.NoDirExists(t, s.Dir(key("iris")))
	assert.True(t, s.Has(a.Digest))
}

// TestDirectoryOfSeveralRuns checks that a sweep's directory is kept as long as the logs of the
// trial that used it last.
func TestDirectoryOfSeveralRuns(t *testing.T) {
	s, logs := Open(t.TempDir()), t.TempDir()
	b, a := tarOf(t, tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1})
	require.NoError(t, s.Put(a, bytes.NewReader(b)))
	held := true
	sweep := func() {
		t.Helper()
		require.NoError(t, s.Sweep(Needs{Held: func(runkey.Run) bool { return held }, Used: func(string) bool { return held }}))
	}
	of := func(trial string) Unpacked {
		return Unpacked{Run: key("hp"), Digest: a.Digest, Logs: filepath.Join(logs, trial)}
	}
	require.ErrorIs(t, s.Reuse(of("hp.0"), nil), fs.ErrNotExist)
	require.NoError(t, s.Unpack(t.Context(), of("hp.0"), int64(a.Size), nil, func(int64) {}))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir(key("hp")), "model"), nil, 0o600))
	held = false
	require.NoError(t, os.Mkdir(filepath.Join(logs, "hp.1"), 0o700))
	require.NoError(t, s.Reuse(of("hp.1"), nil))
	assert.Equal(t, s.Dir(key("hp")), s.DirOf(key("hp.1"), of("hp.1").Logs))
	assert.Equal(t, s.Dir(key("hp.0")), s.DirOf(key("hp.0"), of("hp.0").Logs), "hp.1 has used it last")
	sweep()
	assert.FileExists(t, filepath.Join(s.Dir(key("hp")), "model"), "the logs of hp.1 are there")
	assert.False(t, s.Has(a.Digest))
	require.NoError(t, s.Unpack(t.Context(), of("hp.1"), int64(a.Size), nil, nil), "without the archive")
	require.NoError(t, os.Remove(filepath.Join(logs, "hp.1")))
	sweep()
	assert.NoDirExists(t, s.Dir(key("hp")))
}

func TestSweep(t *testing.T) {
	state, logs := t.TempDir(), filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.Mkdir(logs, 0o700))
	s := Open(state)
	b, a := tarOf(t, tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1})
	require.NoError(t, s.Put(a, bytes.NewReader(b)))
	require.NoError(t, s.Keep(a.Digest, Upload{WorkflowID: "iris"}))
	require.NoError(t, s.Keep(a.Digest, Upload{WorkflowID: "other/../run"}))
	for _, id := range []string{"iris", "quiet"} {
		l := ""
		if id == "iris" {
			l = logs
		}
		require.NoError(t, s.Unpack(t.Context(), Unpacked{Run: key(id), Digest: a.Digest, Logs: l}, int64(a.Size), nil, func(int64) {}))
	}
	held, over := map[string]bool{"iris": true, "quiet": true}, map[string]bool{}
	sweep := func() {
		t.Helper()
		require.NoError(t, s.Sweep(Needs{
			Held: func(run runkey.Run) bool { return held[run.WorkflowID] },
			Used: func(digest string) bool { return digest == a.Digest && (held["iris"] || held["quiet"]) },
			Over: func(u Upload) bool { return over[u.WorkflowID] && time.Since(u.Time) < time.Hour },
		}))
	}
	sweep()
	held["iris"], held["quiet"] = false, false
	unlock, err := s.Lock(t.Context(), a.Digest)
	require.NoError(t, err)
	over["iris"] = true
	sweep()
	assert.DirExists(t, s.Dir(key("quiet")), "its digest is locked")
	unlock()
	sweep()
	assert.NoDirExists(t, s.Dir(key("quiet")), "it keeps no logs, and the host has done with it")
	assert.DirExists(t, s.Dir(key("iris")), "its logs are there")
	assert.True(t, s.Has(a.Digest), "a run that waits has it from here")

	require.NoError(t, os.Remove(logs))
	require.NoError(t, os.Chmod(s.Dir(key("iris")), 0o500))
	over["other/../run"] = true
	sweep()
	assert.NoDirExists(t, s.Dir(key("iris")))
	assert.False(t, s.Has(a.Digest))
	assert.Equal(t, []string{"shipped/", "shipped/archives/", "shipped/new/", "shipped/runs/", "shipped/uploads/"}, names(t, state))

	_, err = s.Create(a)
	require.NoError(t, err)
	require.NoError(t, s.Clear())
	assert.NoDirExists(t, s.unfinished())
}
