package page

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// rendered returns a page as text and as a tree.
func rendered(t testing.TB, p *RunPage, m Mode) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, RenderRun(&b, p, m))
	root, err := html.Parse(strings.NewReader(b.String()))
	require.NoError(t, err)
	return b.String(), root
}

// all returns the elements for which wanted returns true.
func all(root *html.Node, wanted func(*html.Node) bool) (found []*html.Node) {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && wanted(n) {
			found = append(found, n)
		}
	}
	return found
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func byID(root *html.Node, id string) *html.Node {
	for _, n := range all(root, func(n *html.Node) bool { return attribute(n, "id") == id }) {
		return n
	}
	return nil
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func running(n int) *RunPage {
	p := &RunPage{ID: "iris-x2k4", State: "running", Tone: Active, Open: true, Started: noon.Add(-time.Minute), Owner: "ada", Command: "python train.py"}
	p.At, p.Title = noon, "iris-x2k4"
	for i := range n {
		p.Tasks.All = append(p.Tasks.All, Task{Rank: i, Name: "worker-" + number(float64(i)), State: "running", Tone: Active, Host: "node-1", LastLine: "step"})
	}
	return p
}

func TestRunning(t *testing.T) {
	_, root := rendered(t, running(3), Live)
	assert.Contains(t, text(byID(root, "head")), "iris-x2k4 running by ada")
	assert.Len(t, all(byID(root, "tasks"), func(n *html.Node) bool { return n.Data == "tr" }), 4)
	assert.Nil(t, byID(root, "cause").FirstChild)
}
