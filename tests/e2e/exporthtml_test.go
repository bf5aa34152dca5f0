package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/browser"
)

// The page of a run in a file opens without a server. Text of the run is text on it.
func TestAPageInAFile(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("run", "--id", "bad", "-n", "2", "--", "bash", "-c",
		`echo "</pre><script>document.title = 'taken'</script>$RANK" >&2; seq 200000; [ $RANK = 0 ] || sleep 1000; exit 3`)
	require.Equal(t, 3, code, stderr)
	file := filepath.Join(t.TempDir(), "bad.html")
	code, _, stderr = l.run("export", "--format", "html", "bad", "-o", file)
	require.Zero(t, code, stderr)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(5<<20))

	p := browser.Start(t).Open(t, "file://"+file)
	var shown struct {
		Title, Cause, Output string
		Lines, Found         int
	}
	p.Eval(`(() => {
		const lines = () => [...document.querySelectorAll(".l")].filter((line) => !line.hidden).length;
		const before = lines(), search = document.querySelector("#output [name=search]");
		search.value = "199999";
		search.dispatchEvent(new Event("input", { bubbles: true }));
		return {Title: document.title, Cause: document.getElementById("cause").innerText, Output: document.getElementById("output").textContent, Lines: before, Found: lines()};
	})()`, &shown)
	assert.Contains(t, shown.Title, "bad")
	assert.Contains(t, shown.Cause, "worker-0")
	assert.Contains(t, shown.Output, "</pre><script>document.title = 'taken'</script>0")
	assert.Greater(t, shown.Lines, 100)
	assert.Contains(t, []int{1, 2}, shown.Found, "one line, of both ranks or of each")
	assert.Empty(t, p.Problems())
}
