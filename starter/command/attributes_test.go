package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/help"
)

// The help page has the same command as the error messages.
func TestTheTopicRegistersAllSearchAttributes(t *testing.T) {
	topic, found := help.Find("temporal")
	require.True(t, found)
	assert.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(topic.Text, "\\\n", "")), " "), starter.RegisterAttributes())
}
