package software

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/must"
)

// place writes files below a directory.
func place(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func TestVersions(t *testing.T) {
	root := t.TempDir()
	assert.Len(t, versions(root), 1, "the kernel")
	place(t, root, map[string]string{
		"etc/os-release":                                   "NAME=x\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n",
		"proc/driver/nvidia/version":                       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version: 13\n",
		"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 5\n",
		"proc/driver/nvidia/gpus/0000:02:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\n",
		"sys/module/amdgpu/version":                        "6.8.5\n",
		"usr/local/cuda/version.json":                      `{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}}`,
		"usr/lib/x86_64-linux-gnu/libnccl.so.2.25.1":       "",
	})
	got := versions(root)
	assert.NotEmpty(t, got[Kernel])
	delete(got, Kernel)
	assert.Equal(t, map[string]string{
		Distribution: "Ubuntu 24.04.1 LTS", NVIDIADriver: "570.86.15", AMDDriver: "6.8.5", GPUs: "2 × NVIDIA H100 80GB HBM3", CUDA: "12.8.1", NCCL: "2.25.1",
	}, got)
}

func TestPython(t *testing.T) {
	dir, site, later := t.TempDir(), t.TempDir(), t.TempDir()
	record := Of("gpu-1", dir)
	assert.Nil(t, record.Python, "there is no Python program")
	assert.Equal(t, "gpu-1", record.Host)

	place(t, site, map[string]string{
		"torch-2.6.0+cu124.dist-info/METADATA":        "Version: 9\n",
		"torch/version.py":                            "__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\nhip: Optional[str] = None\n",
		"nvidia_nccl_cu12-2.21.5.dist-info/METADATA":  "",
		"ruamel.yaml-0.18.6-py3.12.egg-info/PKG-INFO": "",
		"mine.egg-info/PKG-INFO":                      "Metadata-Version: 2.1\nName: mine\nVersion: 1.2\n",
		"numpy/__init__.py":                           "",
		"old-1.dist-info":                             "a file",
	})
	place(t, later, map[string]string{"torch-1.0.dist-info/METADATA": "", "numpy-2.1.0.dist-info/METADATA": ""})
	paths := strings.Join([]string{"3.12.3", "/venv/bin/python", "", "/no/such/directory", site, filepath.Join(site, "old-1.dist-info"), later, "relative"}, "\n") + "\n"
	place(t, dir, map[string]string{PathsFile: paths})
	p := Of("gpu-1", dir).Python
	require.NotNil(t, p)
	assert.Equal(t, "3.12.3", p.Version)
	assert.Equal(t, "/venv/bin/python", p.Interpreter)
	assert.Equal(t, "12.4", p.CUDA)
	assert.Equal(t, map[string]string{"torch": "2.6.0+cu124", "nvidia-nccl-cu12": "2.21.5", "ruamel-yaml": "0.18.6", "mine": "1.2", "numpy": "2.1.0", "old": "1"}, p.Packages)

	record = Of("gpu-1", dir)
	require.NoError(t, record.Write(dir))
	b := must.Get(os.ReadFile(filepath.Join(dir, File)))(t)
	assert.Equal(t, &record, Parse(b))
	assert.Nil(t, Parse([]byte("[")))
	require.NoError(t, os.RemoveAll(filepath.Join(later, "numpy-2.1.0.dist-info")))
	assert.NotEqual(t, p.Digest, pythonOf(dir).Digest)
}

// A program can write anything to its directory.
func TestHostilePaths(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	for name, text := range map[string]string{
		"nothing": "", "a line": "3.12\n", "bytes": "\xff\xff\n\x00\n\xff", "a FIFO as a directory": "3\n/p\n" + fifo + "\n/dev/zero\n/proc/self/mem\n",
		"many": "3\n/p\n" + strings.Repeat("/\n", 40_000),
	} {
		t.Run(name, func(t *testing.T) {
			place(t, dir, map[string]string{PathsFile: text})
			if p := pythonOf(dir); p != nil {
				assert.Empty(t, p.Packages)
			}
		})
	}
	require.NoError(t, os.Remove(filepath.Join(dir, PathsFile)))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, PathsFile), 0o600))
	assert.Nil(t, pythonOf(dir))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, File), 0o600))
	assert.Error(t, Record{}.Write(dir))
}
