package page

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/browser"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Pages in files fit into windows of three sizes, in light and dark, and cause no errors. With
// PAGE_SHOTS set to a directory, pictures of them are written there.
func TestInABrowser(t *testing.T) {
	b := browser.Start(t)
	shots := os.Getenv("PAGE_SHOTS")
	for name, p := range map[string]*RunPage{"failed": failedRun(), "large": largeRun(), "hostile": hostileRun()} {
		file := filepath.Join(t.TempDir(), name+".html")
		var html bytes.Buffer
		require.NoError(t, RenderRun(&html, p, File))
		require.NoError(t, os.WriteFile(file, html.Bytes(), 0o600))
		opened := b.Open(t, "file://"+file)
		for i, width := range []int{400, 800, 1400} {
			opened.Resize(width, i == 1)
			assert.Empty(t, opened.Overflow(), "%s at %d", name, width)
			assert.Empty(t, opened.Problems(), "%s at %d", name, width)
			var said string
			opened.Eval(`[document.querySelector("h1").textContent, getComputedStyle(document.body).fontSize, document.querySelectorAll("button.copy").length > 0].join()`, &said)
			assert.Equal(t, spec.Cell(p.ID)+",14px,true", said, "the style and the script are in the file, and allowed")
			if shots != "" {
				opened.Screenshot(filepath.Join(shots, fmt.Sprintf("%s-%d.png", name, width)), 3600)
			}
		}
	}
}
