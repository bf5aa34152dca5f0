package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// For build this program is release.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "release" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// need skips where one of these programs is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s", p)
		}
	}
}

// output runs a command in dir.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// shareOf returns the files of a share directory.
func shareOf(t *testing.T) (string, map[string]string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, writeShare(dir, time.Unix(1700000000, 0).UTC()))
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	}))
	return dir, found
}

func TestManualPages(t *testing.T) {
	dir, share := shareOf(t)
	_, again := shareOf(t)
	assert.Equal(t, share, again)
	page := share["man/man1/clusterrun-run.1"]
	assert.Contains(t, page, `.TH CLUSTERRUN\-RUN 1 2023-11-14 "clusterrun `+spec.Version+`" "clusterrun"`)
	assert.Contains(t, share, "man/man1/clusterrun-host-drain.1")
	assert.NotContains(t, share, "man/man1/clusterrun-supervise.1", "is hidden")

	t.Run("roff", func(t *testing.T) {
		need(t, "groff")
		pages := must.Get(filepath.Glob(dir + "/man/man?/*"))(t)
		assert.Empty(t, output(t, dir, "groff", append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...))
	})
	need(t, "man")
	t.Setenv("MANWIDTH", "120")
	t.Setenv("MANPAGER", "cat")
	t.Setenv("LC_ALL", "C.UTF-8")
	shown := output(t, dir, "man", "-l", "man/man1/clusterrun-run.1")
	for _, lines := range []string{
		"       Exit codes:\n         0      the run succeeded\n", "\n       --auto-restart\n              restart failed tasks\n",
		"\nEXAMPLES\n         # Four processes of one program\n         clusterrun run -n 4 -- python3 train.py --epochs 3\n",
		"\n       The options of all commands are in clusterrun(1).\n",
	} {
		assert.Contains(t, shown, lines)
	}
	assert.Contains(t, output(t, dir, "man", "-l", "man/man7/clusterrun-spec.7"), "\nname: iris\n    The first part of the IDs of runs")
}

func TestRoffTakesTextAsItIs(t *testing.T) {
	assert.Equal(t, `\&.git and C:\edir, \(aqa\-b\(aq`, escape(`.git and C:\dir, 'a-b'`))
	assert.Equal(t, `3 \[u00D7] 8 \[u2026]`, escape("3 × 8 …"))
	assert.Equal(t, "One\n\\&.two\n.PP\nCodes:\n.nf\n  0  ended\n\n  1  not\n.fi\nLast\n", paragraphs("One\n.two\n\nCodes:\n  0  ended\n\n  1  not\nLast\n"))
}

func TestCompletions(t *testing.T) {
	dir, share := shareOf(t)
	for name, shell := range map[string]string{
		"bash-completion/completions/clusterrun": "bash", "zsh/site-functions/_clusterrun": "zsh", "fish/vendor_completions.d/clusterrun.fish": "fish",
	} {
		require.Contains(t, share[name], " __complete ")
		t.Run(shell, func(t *testing.T) {
			need(t, shell)
			output(t, dir, shell, "-n", name)
		})
	}
}

func TestSBOM(t *testing.T) {
	self := must.Get(os.Executable())(t)
	t.Chdir("../..")
	var b bytes.Buffer
	require.NoError(t, writeSBOM(&b, []string{self}, time.Unix(1700000000, 0).UTC()))
	list := must.JSON[bom](t, b.Bytes())
	assert.Equal(t, "2023-11-14T22:13:20Z", list.Metadata.Timestamp)
	refs := map[string]component{list.Metadata.Component.Ref: list.Metadata.Component}
	cobra := false
	for _, c := range list.Components {
		assert.NotContains(t, refs, c.Ref)
		refs[c.Ref] = c
		if strings.HasPrefix(c.Ref, "pkg:golang/github.com/spf13/cobra@v") {
			assert.Equal(t, []license{{"Apache-2.0"}}, c.Licenses)
			cobra = true
		}
	}
	assert.Contains(t, refs, "pkg:golang/stdlib@"+strings.TrimPrefix(runtime.Version(), "go"))
	for _, d := range list.Dependencies {
		assert.Contains(t, refs, d.Ref)
		for _, on := range d.On {
			assert.Contains(t, refs, on)
		}
	}
	assert.True(t, cobra, "which the commands are made with")
}

// packed packs a release for an architecture, from programs that are there.
func packed(t *testing.T, architecture string) (dist string, names []string) {
	t.Helper()
	need(t, "bash", "python3", "tar", "gzip", "sha256sum")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("NFPM", nfpm())
	programs := t.TempDir()
	certificates := filepath.Join(programs, "ca.pem")
	require.NoError(t, os.WriteFile(certificates, []byte("-----BEGIN CERTIFICATE-----\n"), 0o600))
	t.Setenv("CERTIFICATES", certificates)
	self := must.Get(os.Executable())(t)
	require.NoError(t, os.Symlink(self, filepath.Join(programs, "release")))
	const program = "package main\nimport (\"os\"; \"runtime\")\nfunc main() { os.Stdout.WriteString(os.Args[1] + \" \" + runtime.GOARCH) }\n"
	require.NoError(t, os.WriteFile(filepath.Join(programs, "main.go"), []byte(program), 0o600))
	t.Setenv("GOARCH", architecture)
	t.Setenv("CGO_ENABLED", "0")
	for _, name := range []string{"clusterrun", "clusterrun-devserver"} {
		output(t, programs, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, "main.go")
		require.NoError(t, os.Chmod(filepath.Join(programs, name), 0o700))
	}
	t.Setenv("PROGRAMS", programs)
	dist = filepath.Join(t.TempDir(), "dist")
	t.Setenv("DIST", dist)
	output(t, ".", "./build", "release", architecture)
	entries := must.Get(os.ReadDir(dist))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return dist, names
}

// A release is packed twice, from programs that are there.
func TestRelease(t *testing.T) {
	dist, names := packed(t, runtime.GOARCH)
	sums := must.Get(os.ReadFile(filepath.Join(dist, "SHA256SUMS")))(t)
	second, _ := packed(t, runtime.GOARCH)
	assert.Equal(t, string(sums), must.Read(t, second, "SHA256SUMS"), "the same programs make the same packages")

	output(t, dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	base := "clusterrun-" + spec.Version + "-linux-" + runtime.GOARCH
	assert.Subset(t, names, []string{base + ".tar.gz", base + ".cdx.json", "SHA256SUMS"})
	for _, name := range []string{"clusterrun", "clusterrun-devserver"} {
		imageIn(t, filepath.Join(dist, name+"-"+spec.Version+"-linux-"+runtime.GOARCH+".oci.tar"))
	}
	assert.Len(t, strings.Split(strings.TrimSpace(string(sums)), "\n"), len(names)-1, "all have a sum")
	installs(t, dist, names, machine{runtime.GOARCH, ""})
}

// nfpm returns the program that NFPM names, or that `make release` has built.
func nfpm() string {
	if path := os.Getenv("NFPM"); path != "" {
		return path
	}
	path, err := filepath.Abs("../../.tools/nfpm")
	if err != nil {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func TestWhatIsNotTold(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	require.ErrorContains(t, run([]string{"share", t.TempDir()}), "SOURCE_DATE_EPOCH must be the time of the sources")
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	require.ErrorContains(t, run([]string{"share"}), "usage: release share DIRECTORY")
	require.Error(t, run([]string{"sbom", "/dev/null"}))
	t.Chdir("../..")
	require.ErrorContains(t, run([]string{"sbom", "Makefile"}), "Makefile")
}
