package markdown_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

func TestLinks(t *testing.T) {
	assert.Equal(t, "[iris](/namespaces/default/workflows/iris/1-2)", markdown.Workflow("iris", "default", "iris", "1-2"))
	assert.Equal(t, "[`a](b)`](/namespaces/my%20space/workflows/a%5D%28b%29%2Fc/1-2)", markdown.Workflow("a](b)", "my space", "a](b)/c", "1-2"),
		"a name ends neither the text nor the target")
	assert.Equal(t, "[more](/namespaces/default/workflows?query=%60WorkflowId%60+STARTS_WITH+%22a+%28b%29%2F%22)", markdown.Below("more", "default", "a (b)"))
}
