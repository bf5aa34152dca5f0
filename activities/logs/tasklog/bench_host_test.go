package tasklog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCollect measures what filtering costs a host, for logs in which few lines match.
func BenchmarkCollect(b *testing.B) {
	run := b.TempDir()
	dir := ProcessDir(run, 0, 0)
	require.NoError(b, MakeDir(dir))
	line := strings.Repeat("x", 99) + "\n"
	text := []byte(strings.Repeat(strings.Repeat(line, 99)+"loss"+line, 10_000)) // 100 MB
	require.NoError(b, os.WriteFile(filepath.Join(dir, StdoutFile), text, 0o600))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c := Collect(run, CollectOptions{Stdout: []string{"loss", "accuracy"}})
		require.NoError(b, c.Stop(b.Context()))
	}
}

// BenchmarkTimes measures what each heartbeat of a writing process pays to note its output.
func BenchmarkTimes(b *testing.B) {
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, StdoutFile))
	require.NoError(b, err)
	defer f.Close()
	times := NewTimes(dir)
	for n := int64(1); b.Loop(); n++ {
		require.NoError(b, f.Truncate(n))
		times.Note()
	}
}
