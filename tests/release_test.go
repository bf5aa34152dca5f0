package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A release is packed twice, with stand-ins for the programs.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"bash", "python3", "tar", "gzip", "sha256sum"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s", p)
		}
	}
	programs := t.TempDir()
	for _, name := range []string{"clusterrun", "clusterrun-supervisor", "clusterrun-devserver"} {
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho "+name+" $1\n"), 0o700))
	}
	output := func(dir, name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "PROGRAMS="+programs, "DIST="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	build := must.Get(filepath.Abs("../deployments/release/build"))(t)
	dist := filepath.Join(t.TempDir(), "dist")
	require.NoError(t, os.Mkdir(dist, 0o700))
	output(dist, build, "release")
	sums := must.Read(t, dist, "SHA256SUMS")
	output(dist, build, "release")
	assert.Equal(t, sums, must.Read(t, dist, "SHA256SUMS"), "the same programs make the same packages")
	output(dist, "sha256sum", "--check", "--strict", "SHA256SUMS")

	for _, architecture := range []string{"amd64", "arm64"} {
		assert.Contains(t, sums, "  clusterrun-"+spec.Version+"-linux-"+architecture+".tar.gz\n")
	}
	assert.Contains(t, sums, ".musllinux_1_1_x86_64.whl\n")
	assert.Contains(t, sums, ".musllinux_1_1_aarch64.whl\n")

	root := t.TempDir()
	output(root, "tar", "--strip-components", "1", "-xzf", filepath.Join(dist, "clusterrun-"+spec.Version+"-linux-amd64.tar.gz"))
	for _, name := range []string{"clusterrun", "clusterrun-supervisor", "clusterrun-devserver"} {
		program := filepath.Join(root, "bin", name)
		assert.Equal(t, name+" hello\n", output(root, program, "hello"))
		info := must.Get(os.Stat(program))(t)
		assert.Equal(t, os.FileMode(0o755), info.Mode(), "all users execute it")
		assert.Equal(t, int64(1700000000), info.ModTime().Unix())
	}
	assert.FileExists(t, filepath.Join(root, "share/doc/clusterrun/licenses.md"))
}
