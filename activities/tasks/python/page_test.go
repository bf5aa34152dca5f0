package python

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page of help has all names of the package.
func TestThePageHasAllNames(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../starter/help/topics/reference/python.md")
	require.NoError(t, err)
	source, err := os.ReadFile("clusterrun/__init__.py")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?s)__all__ = \[(.*?)\]`).FindSubmatch(source)
	require.NotNil(t, list)
	names := regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(list[1], -1)
	assert.Greater(t, len(names), 30)
	for _, name := range names {
		assert.Regexp(t, "`"+string(name[1])+`\b`, string(page))
	}
}
