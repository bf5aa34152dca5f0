package supervise

import (
	"bufio"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A supervisor that waited for its log's reader would supervise nothing.
func TestALogThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		l := NewLogFile(writer)
		defer close(l.entries)
		log := slog.New(slog.NewTextHandler(l, nil))
		const more = 7
		for i := range 1 + unwrittenMost + more {
			// The writer takes the first one.
			log.Info("message " + strings.Repeat("x", i))
			if i == 0 {
				synctest.Wait()
			}
		}
		require.NoError(t, l.Sync(), "it returns")

		lines := bufio.NewScanner(reader)
		lines.Buffer(nil, 1<<20)
		var last string
		for range 1 + unwrittenMost + 1 {
			require.True(t, lines.Scan())
			last = lines.Text()
		}
		require.Equal(t, "7 messages were dropped here because nobody read them in time", last)
		log.Info("after it", "n", 1)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), `msg="after it" n=1`)
		require.NoError(t, l.Sync())
		require.NoError(t, writer.Close())
	})
}
