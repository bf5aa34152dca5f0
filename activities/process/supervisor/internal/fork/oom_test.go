package fork

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestOOMScoreDuringAFork(t *testing.T) {
	content := func(file string) string {
		return must.Read(t, file)
	}
	for had, children := range map[string]string{"0\n": "0", "-500\n": "0", "300\n": "300"} {
		file := filepath.Join(t.TempDir(), "score")
		require.NoError(t, os.WriteFile(file, []byte(had), 0o600))
		s := protect(file)
		assert.Equal(t, "-900", content(file))
		raise := s.lower()
		assert.Equal(t, children, content(file))
		raise()
		assert.Equal(t, "-900", content(file))
	}
	none := protect(filepath.Join(t.TempDir(), "missing"))
	none.lower()()
	assert.NoFileExists(t, none.file)
}
