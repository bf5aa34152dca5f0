package tasklog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTraceFile(t *testing.T) {
	dir := t.TempDir()
	assert.Empty(t, TraceFile(filepath.Join(dir, "missing")))
	begun := time.Now()
	write := func(name, text string, age time.Duration) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, begun, begun.Add(-age)))
		return path
	}
	write(StderrFile, "text", 0)
	write(TracePrefix+"0", "", 0)
	require.NoError(t, os.Mkdir(filepath.Join(dir, TracePrefix+"1"), 0o700))
	assert.Empty(t, TraceFile(dir), "neither output, nor an empty file, nor a directory")
	older := write(TracePrefix+"2", "trace", time.Minute)
	assert.Equal(t, older, TraceFile(dir))
	latest := write(TracePrefix+"17", "trace", time.Second)
	assert.Equal(t, latest, TraceFile(dir))
}
