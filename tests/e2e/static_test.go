package e2e

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// The programs start where libc is older than on the machine that built them, or missing.
func TestProgramsNeedNoLibc(t *testing.T) {
	for _, path := range []string{harness.Clusterrun(t), harness.Devserver(t)} {
		program, err := elf.Open(path)
		require.NoError(t, err)
		needed, err := program.ImportedLibraries()
		require.NoError(t, err)
		assert.Empty(t, needed, path)
		for _, p := range program.Progs {
			assert.NotEqual(t, elf.PT_INTERP, p.Type, "%s needs a dynamic linker", path)
		}
		require.NoError(t, program.Close())
	}
}
