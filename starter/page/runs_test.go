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

func runsPage() *RunsPage {
	p := &RunsPage{
		Filters: []Filter{{Label: "State", Links: []Link{{Text: "All", URL: "/", Current: true}, {Text: "Open", URL: "/?state=open"}}}},
		Open:    []RunRow{{ID: "iris-x2k4", URL: "/runs/iris-x2k4", State: "running", Tone: Active, Owner: Link{Text: "ada@node", URL: "/?user=ada%40node"}, Started: noon.Add(-time.Minute), Hosts: []Link{{Text: "gpu-1", URL: "/?host=gpu-1"}}, MoreHosts: 7}},
		Ended:   []RunRow{{ID: "mnist-8ab3", URL: "/runs/mnist-8ab3", State: "failed", Tone: Bad, Why: "out of memory", Started: noon.Add(-time.Hour), Ended: noon.Add(-30 * time.Minute), Restarts: 2}},
		Older:   "/?before=x",
	}
	p.At, p.Title, p.Nav = noon, "Runs", []Link{{Text: "Runs", URL: "/", Current: true}}
	return p
}

func tree(t *testing.T, write func(*bytes.Buffer) error) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	root, err := html.Parse(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	return b.String(), root
}

func TestRunsAreOpenFirst(t *testing.T) {
	_, root := tree(t, func(b *bytes.Buffer) error { return RenderRuns(b, runsPage()) })
	list := text(byID(root, "runs"))
	assert.Contains(t, list, "iris-x2k4 ada@node gpu-1 , 7 more")
	assert.Less(t, strings.Index(list, "iris-x2k4"), strings.Index(list, "mnist-8ab3"))
	assert.Contains(t, list, "failed out of memory")
	assert.Contains(t, list, "30m 00s 2")
	links := all(root, func(n *html.Node) bool { return n.Data == "a" && attribute(n, "href") == "/runs/mnist-8ab3" })
	assert.Len(t, links, 1)
}

func TestNoRuns(t *testing.T) {
	p := &RunsPage{Frame: Frame{At: noon}}
	_, root := tree(t, func(b *bytes.Buffer) error { return RenderRuns(b, p) })
	assert.Contains(t, text(byID(root, "runs")), "No run was started here yet.")
	p.Name = "iris"
	_, root = tree(t, func(b *bytes.Buffer) error { return RenderRuns(b, p) })
	assert.Contains(t, text(byID(root, "runs")), "No run matches.")
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>` + "\x1b[2J\u202e"

// Text of users is text, wherever it stands, and no page needs what its policy forbids.
func TestHostileLists(t *testing.T) {
	p := runsPage()
	plain := strings.ReplaceAll(hostile, "\x1b", "") // a form sends its values back unchanged
	p.Name, p.Kept = plain, []Field{{Name: "user", Value: plain}}
	p.Filters[0].Links[1] = Link{Text: hostile, URL: "javascript:alert(1)"}
	p.Open[0] = RunRow{ID: hostile, URL: "/runs/x", State: "running", Why: hostile, Command: hostile, Tasks: hostile, Owner: Link{Text: hostile, URL: "javascript:alert(1)"}, Hosts: []Link{{Text: hostile, URL: "javascript:alert(1)"}}}
	hosts := &HostsPage{
		Frame: Frame{At: noon}, Queue: hostile,
		Hosts:   []HostRow{{Name: hostile, RunsURL: "javascript:alert(1)", State: "ready", Reason: hostile, Model: hostile, GPUs: 1, Version: hostile, Labels: []string{hostile}, Holds: []Held{{Run: Link{Text: hostile, URL: "javascript:alert(1)"}}}}},
		Waiting: []WaitingRow{{Run: Link{Text: hostile, URL: "javascript:alert(1)"}, Why: hostile}},
	}
	message := &MessagePage{Frame: Frame{At: noon, Title: hostile}, Text: hostile, Items: []string{hostile}, Back: Link{Text: hostile, URL: "javascript:alert(1)"}}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"runs":  func(b *bytes.Buffer) error { return RenderRuns(b, p) },
		"hosts": func(b *bytes.Buffer) error { return RenderHosts(b, hosts) },
		"problem": func(b *bytes.Buffer) error {
			return RenderHosts(b, &HostsPage{Frame: Frame{At: noon}, Problem: hostile})
		},
		"message": func(b *bytes.Buffer) error { return RenderMessage(b, message) },
	} {
		t.Run(name, func(t *testing.T) {
			page, root := tree(t, write)
			assert.NotContains(t, page, "\x1b")
			for _, n := range all(root, func(*html.Node) bool { return true }) {
				assert.NotEqual(t, "img", n.Data)
				assert.NotEqual(t, "style", n.Data)
				assert.False(t, n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(attribute(n, "src"), AssetsPath)), "a script within the page")
				for _, a := range n.Attr {
					assert.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style", a.Key)
					assert.NotContains(t, strings.ToLower(a.Val), "javascript:")
				}
			}
		})
	}
}
