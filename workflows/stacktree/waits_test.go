package stacktree

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTableOfWaits(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(waitsText) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.Split(line, "\t")
		require.Len(t, c, 6, line)
		assert.Contains(t, []Kind{Python, Native, Kernel}, Kind(c[0]), line)
		_, err := path.Match(c[1], "")
		assert.NoError(t, err, line)
		if Kind(c[0]) == Native {
			assert.Equal(t, strings.ToLower(c[1]), c[1], line)
		}
		_, known := reasons[Reason(c[3])]
		assert.True(t, known && c[3] != "", line)
		assert.NotEmpty(t, c[5], "a source: %s", line)
		key := strings.Join(c[:3], "\t")
		assert.False(t, seen[key], "twice: %s", line)
		seen[key] = true
	}
	assert.NotEmpty(t, seen)
}
