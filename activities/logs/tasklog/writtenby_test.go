package tasklog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrittenBy(t *testing.T) {
	run := t.TempDir()
	dir := ProcessDir(run, 0, 3)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, TimesFile), []byte("1000 10 0\n2000 10 5\n3000 40 5\n"), 0o600))
	by := WrittenBy(run)
	for offset, want := range map[int64]int64{0: 1000, 10: 1000, 11: 3000, 40: 3000} {
		assert.Equal(t, time.Unix(0, want), by(Stream{Rank: 3}, offset), offset)
	}
	assert.Equal(t, time.Unix(0, 2000), by(Stream{Rank: 3, Stderr: true}, 5))
	assert.Zero(t, by(Stream{Rank: 3}, 41), "written since")
	assert.Zero(t, by(Stream{Rank: 4}, 1), "nothing is recorded")
}
