package workers

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// A supervisor that waited for the reader of its log would supervise nothing.
func TestALogThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		l := newLossy(writer)
		defer close(l.entries)
		log := loggerTo(false, l)
		const more = 7
		for i := range 1 + unwrittenMost + more {
			// The writer takes the first one, and the sampling no two that are alike.
			log.Info("message " + strings.Repeat("x", i))
			if i == 0 {
				synctest.Wait()
			}
		}
		require.NoError(t, log.Sync(), "it returns")

		lines := bufio.NewScanner(reader)
		lines.Buffer(nil, 1<<20)
		var last string
		for range 1 + unwrittenMost + 1 {
			require.True(t, lines.Scan())
			last = lines.Text()
		}
		require.Equal(t, "7 messages were dropped here, since nobody read them in time", last)
		log.Info("after it", zap.Int("n", 1))
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "after it\t{\"n\": 1}")
		require.NoError(t, log.Sync())
		require.NoError(t, writer.Close())
	})
}
