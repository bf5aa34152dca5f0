package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// machine executes programs for an architecture, by an emulator where one is named.
type machine struct{ architecture, emulator string }

// foreign is a machine whose architecture differs from this one's.
func foreign() machine {
	if runtime.GOARCH == "arm64" {
		return machine{"amd64", "qemu-x86_64-static"}
	}
	return machine{"arm64", "qemu-aarch64-static"}
}

// The packages for the other architecture are installed here, and their programs execute.
func TestReleaseForAnotherMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("TestRelease installs the same packages for this machine")
	}
	m := foreign()
	need(t, m.emulator)
	dist, names := packed(t, m.architecture)
	installs(t, dist, names, m)
}

// works checks that programs, pages and completions are below dir for all users.
func (m machine) works(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"clusterrun", "clusterrun-devserver"} {
		m.executes(t, filepath.Join(dir, "bin", name))
		info := must.Get(os.Stat(filepath.Join(dir, "bin", name)))(t)
		assert.Equal(t, fs.FileMode(0o755), info.Mode())
		assert.Equal(t, int64(1700000000), info.ModTime().Unix())
	}
	for _, name := range []string{
		"man/man1/clusterrun-run.1.gz", "bash-completion/completions/clusterrun", "zsh/site-functions/_clusterrun",
		"fish/vendor_completions.d/clusterrun.fish", "doc/clusterrun/licenses.md",
	} {
		info := must.Get(os.Stat(filepath.Join(dir, "share", name)))(t)
		assert.Equal(t, fs.FileMode(0o644), info.Mode())
	}
}

func (m machine) executes(t *testing.T, program string) {
	t.Helper()
	argv := []string{program, "hello"}
	if m.emulator != "" {
		argv = append([]string{m.emulator}, argv...)
	}
	assert.Equal(t, "hello "+m.architecture, output(t, ".", argv[0], argv[1:]...))
}

// installs installs all that is packed for a machine, as its users do.
func installs(t *testing.T, dist string, names []string, m machine) {
	t.Helper()
	find := func(t *testing.T, suffix string) string {
		t.Helper()
		i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, suffix) })
		require.GreaterOrEqual(t, i, 0, "no *%s in %s", suffix, names)
		return filepath.Join(dist, names[i])
	}
	t.Run("tarball", func(t *testing.T) {
		dir := t.TempDir()
		output(t, dir, "tar", "--strip-components", "1", "-xzf", find(t, m.architecture+".tar.gz"))
		m.works(t, dir)
	})
	t.Run("wheel", func(t *testing.T) {
		if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
			t.Skip("there is no pip")
		}
		dir := t.TempDir()
		of := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[m.architecture]
		output(t, dir, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore",
			"--no-index", "--no-deps", "--only-binary", ":all:", "--platform", "manylinux2014_"+of, "--target", dir, find(t, ".whl"))
		m.executes(t, filepath.Join(dir, "bin", "clusterrun"))
		assert.FileExists(t, filepath.Join(dir, "clusterrun", "__init__.py"))
	})
	for packager, manager := range map[string]func(*testing.T, machine, string, string){"deb": dpkg, "rpm": rpm} {
		t.Run(packager, func(t *testing.T) {
			if nfpm() == "" {
				t.Skip("there is no nfpm; `make release` builds it")
			}
			if os.Getuid() != 0 {
				t.Skip("only root installs packages")
			}
			need(t, map[string]string{"deb": "dpkg", "rpm": "rpm"}[packager])
			manager(t, m, older(t, packager, m.architecture), find(t, "."+packager))
		})
	}
}

// older makes the package of a version that came before.
func older(t *testing.T, packager, architecture string) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{name: clusterrun, version: 0.0.1, arch: %s, maintainer: nobody, description: before, contents: [
{src: config, dst: /usr/bin/clusterrun}, {src: config, dst: /usr/share/doc/clusterrun/gone}]}`, architecture)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(text), 0o600))
	output(t, dir, nfpm(), "package", "--config", "config", "--packager", packager, "--target", "old."+packager)
	return filepath.Join(dir, "old."+packager)
}

// dpkg installs, upgrades and removes a package in a root of its own.
func dpkg(t *testing.T, m machine, before, path string) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/info"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/updates"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	do := func(args ...string) string {
		t.Helper()
		return output(t, root, "dpkg", append([]string{"--root=" + root, "--log=/dev/null"}, args...)...)
	}
	if m.emulator != "" {
		do("--add-architecture", m.architecture)
	}
	do("--install", before)
	do("--install", path)
	m.upgraded(t, root)
	assert.Empty(t, do("--verify", "clusterrun"))
	do("--purge", "clusterrun")
	assert.NoDirExists(t, filepath.Join(root, "usr"), "nothing is left")
}

// rpm installs, upgrades and erases a package in a root of its own.
func rpm(t *testing.T, m machine, before, path string) {
	database := []string{"--define", "_dbpath /var/lib/rpm", "--root"}
	in := func(root string, args ...string) string {
		t.Helper()
		cmd := exec.Command("rpm", slices.Concat(database, []string{root}, args)...)
		var complaints strings.Builder // Debian's rpm would rather be called by alien
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		require.NoError(t, err, "%s%s", out, complaints.String())
		return string(out)
	}
	root := t.TempDir()
	in(root, "--install", "--ignorearch", before)
	in(root, "--upgrade", "--ignorearch", path)
	m.upgraded(t, root)
	assert.Empty(t, in(root, "--verify", "clusterrun"))
	of := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[m.architecture]
	assert.Equal(t, of, in(root, "--query", "--queryformat", "%{ARCH}", "clusterrun"))
	assert.Empty(t, in(root, "--query", "--scripts", "clusterrun"))
	assert.Equal(t, "python3\nopenssh-clients\n", in(root, "--query", "--suggests", "clusterrun"), "as Red Hat names them")
	documents := in(root, "--query", "--docfiles", "clusterrun")
	assert.Contains(t, documents, "/usr/share/doc/clusterrun/README.md\n")
	assert.Contains(t, documents, "/usr/share/man/man1/clusterrun-run.1.gz\n")
	assert.Contains(t, in(root, "--query", "--list", "clusterrun"), "/usr/share/doc/clusterrun\n", "goes with the package")
	in(root, "--erase", "clusterrun")
	assert.Empty(t, filesBelow(t, filepath.Join(root, "usr")))
	assert.NoDirExists(t, filepath.Join(root, "usr/share/doc/clusterrun"))

	// Images of containers have no documentation.
	bare := t.TempDir()
	in(bare, "--install", "--ignorearch", "--nodocs", path)
	assert.Len(t, filesBelow(t, filepath.Join(bare, "usr")), 6, "two programs, completions for three shells, and the licences")
}

// upgraded checks that a new version has replaced the version of older.
func (m machine) upgraded(t *testing.T, root string) {
	t.Helper()
	m.works(t, filepath.Join(root, "usr"))
	assert.NoFileExists(t, filepath.Join(root, "usr/share/doc/clusterrun/gone"))
}

func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return files
}
