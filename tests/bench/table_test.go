package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func sampleTable() *comparison {
	c := &comparison{machine: Machine{CPU: "A processor", Cores: 2, Kernel: "Linux 6", Load: "0.10"}}
	c.add("clusterrun", "", &Launcher{})
	c.add("a shell", "", &Launcher{})
	c.add("mpirun", "openmpi-bin", &Launcher{})
	c.add("other", "", nil)
	c.rows = []row{
		{work{name: "launch of 1", unit: "ms"}, []cell{{value: 60}, {value: 1}, {value: 30}}},
		{work{name: "launch of 8", unit: "ms"}, []cell{{value: 100}, {value: 5}, {value: 200}}},
		{work{name: "lines", more: true}, []cell{{value: 100}, {value: 5000}, {value: 300}}},
		{work{name: "memory", unit: "KiB"}, []cell{{value: 150}, {value: 0}, {value: 0}}},
	}
	c.alike = []libraryRow{{"barrier", "clusterrun", []string{"90 µs"}}}
	c.failures = []string{"lines, mpirun: failed in round 2"}
	return c
}

func TestTableNamesWhatIsWorseAndWhatIsMissing(t *testing.T) {
	text := sampleTable().markdown()
	assert.Contains(t, text, "On A processor, 2 processors, Linux 6, load 0.10 (")
	assert.Contains(t, text, "| | clusterrun | a shell | mpirun |\n| --- | --- | --- | --- |\n")
	assert.Contains(t, text, "| launch of 1 | 60 ms | 1 ms | 30 ms |\n")
	assert.Contains(t, text, "| barrier | clusterrun | 90 µs | |\n")
	assert.Contains(t, text, "failed:\n\n- launch of 1: mpirun (2 times)\n- lines: mpirun (3 times)\n- memory: mpirun (0 KiB)\n- lines, mpirun: failed in round 2\n")
	assert.Contains(t, text, "\nNot installed: other.\n")
}

func TestTableGoesBetweenItsMarks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600))
	for range 2 {
		require.NoError(t, replace(page, "new\n"))
	}
	text := must.Get(os.ReadFile(page))(t)
	assert.Equal(t, "before\n"+begin+"\nnew\n\n"+end+"after\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("no marks\n"), 0o600))
	assert.ErrorContains(t, replace(page, "new\n"), "has not the lines")
}
