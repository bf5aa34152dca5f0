package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInterruptedFileIsNotThere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.tar.gz")
	for _, last := range []bool{true, false} {
		ctx, interrupt := context.WithCancel(t.Context())
		err := WriteNew(ctx, file, func(w io.Writer) error {
			_, err := io.WriteString(w, "half of it")
			require.NoError(t, err)
			interrupt()
			if last {
				return nil
			}
			_, err = io.WriteString(w, "and the rest")
			return err
		})
		require.ErrorIs(t, err, context.Canceled)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
	require.NoError(t, WriteNew(t.Context(), file, func(io.Writer) error { return nil }))
	var usage *UsageError
	require.ErrorAs(t, WriteNew(t.Context(), file, func(io.Writer) error { return nil }), &usage)
}
