package page

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

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

func named(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return n.Data == name }
}

func classed(class string) func(*html.Node) bool {
	return func(n *html.Node) bool { return strings.Contains(" "+attribute(n, "class")+" ", " "+class+" ") }
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
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// rows returns the texts of the rows of the grid.
func rows(root *html.Node) (texts []string) {
	for _, body := range all(byID(root, "tasks"), named("tbody")) {
		for _, row := range all(body, named("tr")) {
			texts = append(texts, text(row))
		}
	}
	return texts
}

func TestAGoodRun(t *testing.T) {
	_, root := rendered(t, goodRun(), Live)
	assert.Contains(t, text(byID(root, "head")), "iris-x2k4 succeeded by ada")
	assert.Contains(t, text(byID(root, "head")), "took 42m 00s 48 tasks on 6 hosts 1 restart exit code 0")
	assert.Len(t, rows(root), 48)
	assert.Nil(t, byID(root, "cause").FirstChild)
	assert.Empty(t, attribute(all(root, named("body"))[0], "data-refresh"), "nothing will change")
	assert.Contains(t, text(byID(root, "output-lines")), "ranks 0-47 step 4670 loss 2.3100 × 48")
	assert.Len(t, all(byID(root, "usage"), named("figure")), 4)
}

func TestAFailedRun(t *testing.T) {
	_, root := rendered(t, failedRun(), Live)
	cause := text(byID(root, "cause"))
	assert.Contains(t, cause, "ValueError: shard 17 is corrupt")
	assert.Contains(t, cause, "worker-17 on gpu-2, rank 17, pid 41217, at")
	assert.Contains(t, cause, "line 88, in __next__")
	first := rows(root)
	assert.True(t, strings.HasPrefix(first[0], "17 worker-17 failed exit code 1"), first[0])
	assert.True(t, strings.HasPrefix(first[1], "3 worker-3 failed"), first[1])
	assert.True(t, strings.HasPrefix(first[2], "0 worker-0 stopped because of worker-17"), first[2])
	assert.Len(t, all(byID(root, "tasks"), classed("t-culprit")), 3, "the row, its symbol and the symbol of the count")
	// Lines of the culprit have its tone.
	lines := all(byID(root, "output"), classed("l"))
	assert.Contains(t, attribute(lines[len(lines)-1], "class"), "t-culprit")
	// Each state has a word and a symbol, so that color is not needed.
	for _, cell := range all(byID(root, "tasks"), classed("s")) {
		assert.Len(t, all(cell, named("svg")), 1)
		assert.NotEmpty(t, text(cell))
	}
}

func TestAHangingRun(t *testing.T) {
	_, root := rendered(t, hangingRun(), Live)
	assert.Equal(t, "2000", attribute(all(root, named("body"))[0], "data-refresh"))
	stacks := text(byID(root, "stacks"))
	assert.Contains(t, stacks, "rank 17 on gpu-2 holds the others up")
	assert.Contains(t, stacks, "47 ranks 0-16,18-47")
	barriers := text(byID(root, "barriers"))
	assert.Contains(t, barriers, "epoch, round 4")
	assert.Contains(t, barriers, "worker-17 missing running gpu-2")
	forms := all(byID(root, "head"), named("form"))
	require.Len(t, forms, 2)
	assert.Equal(t, "post", attribute(forms[1], "method"))
	assert.Contains(t, text(forms[1]), "Stop the run? 48 tasks get SIGTERM")
}

func TestALargeRun(t *testing.T) {
	p := largeRun()
	page, root := rendered(t, p, Live)
	assert.Less(t, len(page), 512<<10)
	assert.Len(t, all(byID(root, "tasks"), named("i")), 2000)
	got := rows(root)
	assert.Less(t, len(got), 60)
	assert.Contains(t, got[0], "worker-1234 restarting exit code 1 3 restarts")
	assert.Contains(t, got[1], "worker-77")
	// Every other task is a link away.
	p.Tasks.Filter.Page = 10
	_, root = rendered(t, p, Live)
	got = rows(root)
	assert.Len(t, got, 200)
	assert.Contains(t, got[0], "worker-1800")
	assert.Contains(t, text(byID(root, "tasks")), "1801 to 2000 of 2000 tasks")
	p.Tasks.Filter = TaskFilter{State: "pending"}
	_, root = rendered(t, p, Live)
	assert.Len(t, rows(root), 10)
	p.Tasks.Filter = TaskFilter{State: "none", Page: 99}
	_, root = rendered(t, p, Live)
	assert.Empty(t, rows(root))

	page, _ = rendered(t, runOf(10_000), Live)
	assert.Less(t, len(page), 2<<20)
	page, root = rendered(t, runOf(10_000), File)
	assert.Less(t, len(page), 5<<20)
	assert.Contains(t, text(byID(root, "tasks")), "The worst 2000 of 10000 tasks; the others are left out of this file.")
}

func TestAHostThatIsAway(t *testing.T) {
	_, root := rendered(t, awayRun(), Live)
	assert.Contains(t, text(byID(root, "notices")), "gpu-2 has sent nothing")
	assert.True(t, strings.HasPrefix(rows(root)[0], "16 worker-16 missing"))
	assert.Contains(t, text(byID(root, "output")), "connection refused")
}

// A page has landmarks, captions, headers of tables and one heading of the first level.
func TestStructure(t *testing.T) {
	for name, p := range map[string]*RunPage{"good": goodRun(), "failed": failedRun(), "hanging": hangingRun(), "large": largeRun(), "empty": {ID: "x", State: "placing", Tone: Waits, Open: true}} {
		for _, m := range []Mode{Live, File} {
			_, root := rendered(t, p, m)
			for _, landmark := range []string{"header", "main", "footer", "h1"} {
				assert.NotEmpty(t, all(root, named(landmark)), "%s: %s", name, landmark)
			}
			assert.Len(t, all(root, named("h1")), 1)
			for _, table := range all(root, named("table")) {
				assert.NotEmpty(t, all(table, named("caption")), name)
				for _, th := range all(table, named("th")) {
					assert.NotEmpty(t, attribute(th, "scope"), name)
				}
			}
			ids := map[string]bool{}
			for _, n := range all(root, func(n *html.Node) bool { return attribute(n, "id") != "" }) {
				assert.False(t, ids[attribute(n, "id")], "%s: id %s is there twice", name, attribute(n, "id"))
				ids[attribute(n, "id")] = true
			}
			for _, n := range all(root, func(n *html.Node) bool { return attribute(n, "aria-labelledby") != "" }) {
				assert.True(t, ids[attribute(n, "aria-labelledby")], "%s: %s", name, attribute(n, "aria-labelledby"))
			}
			assert.Empty(t, all(root, func(n *html.Node) bool { return attribute(n, "style") != "" || attribute(n, "onclick") != "" }), "the policy forbids these")
		}
	}
}

// A file has everything in it, and needs no server.
func TestAFile(t *testing.T) {
	page, root := rendered(t, hangingRun(), File)
	assert.Less(t, len(page), 5<<20)
	for _, n := range all(root, func(n *html.Node) bool {
		return n.Data == "link" || n.Data == "script" || n.Data == "img" || n.Data == "a" || n.Data == "form"
	}) {
		for _, name := range []string{"src", "href", "action"} {
			if to := attribute(n, name); to != "" {
				assert.True(t, strings.HasPrefix(to, "#") || to == "data:,", "%s %s", n.Data, to)
			}
		}
	}
	assert.Empty(t, all(root, named("form")))
	var policy string
	for _, n := range all(root, named("meta")) {
		if attribute(n, "http-equiv") != "" {
			policy = attribute(n, "content")
		}
	}
	assert.Equal(t, CSP(File), policy)
	assert.NotContains(t, policy, "unsafe")
}

// hostileRun has in each text something that must not become a part of the page.
func hostileRun() *RunPage {
	const evil = "</script></style></title><script>document.title='owned'</script><img src=x onerror=alert(1)>\" onmouseover='x'\u202e\x1b]0;x\a\xff"
	p := failedRun()
	p.ID, p.Name, p.Owner, p.Command, p.Dir, p.State = "iris"+evil, evil, evil, strings.Repeat(evil, 20), evil, "failed"
	p.Cause = &Cause{Sentence: evil, Task: evil, Host: evil, Words: evil + "\n" + evil, FirstError: evil, Details: []string{evil}}
	p.Notices = []Notice{{Warning, evil, []string{evil}}}
	for i := range p.Tasks.All {
		t := &p.Tasks.All[i]
		t.Name, t.Host, t.How, t.LastLine = evil, evil, evil, evil
	}
	long := strings.Repeat("W", 1<<20)
	p.Output = Output{Cut: evil, Missing: []string{evil}, Lines: []OutputLine{
		{Task: evil, Text: evil, Count: 1}, {Task: "w", Text: long, Count: 1}, {Task: "w", Text: "10%\r20%\r30%\x1b[2K\x1b[31;1mred\x1b[0m \x1b[38;5;196mbright\x1b[m\x1b[999", Count: 1},
	}}
	p.Timeline.Events = []Event{{noon, evil, Bad}}
	p.Timeline.Spans = append(p.Timeline.Spans, Span{evil, evil, noon.Add(-time.Minute), noon, Bad})
	p.Stacks = &stacktree.Findings{Sentence: evil, Classes: []stacktree.Class{{Count: 1, Ranks: stacktree.RanksOf(0), Place: []stacktree.Frame{{Kind: stacktree.Python, Function: evil, File: evil, Line: 3}}}}}
	p.Barriers = []Barrier{{Name: evil, Missing: []BarrierTask{{Task: evil, Host: evil, State: evil}}}}
	p.Spec, p.Commands = evil, []Command{{evil, evil}}
	p.Starts = []Start{{Tasks: evil, Version: evil, Dir: evil, Set: []Variable{{Name: evil, Value: evil}}, Inherited: []string{evil}}}
	p.Series[0].Name, p.Series[0].Tasks[0].Name = evil, evil
	p.Output.Filter = OutputFilter{Ranks: evil, Search: evil}
	p.TemporalURL = "javascript:alert(1)"
	return p
}

func TestHostileText(t *testing.T) {
	for _, m := range []Mode{Live, File} {
		page, root := rendered(t, hostileRun(), m)
		assert.Less(t, len(page), 2<<20, "a line of a megabyte is cut")
		assert.Len(t, all(root, named("script")), 1)
		assert.Empty(t, all(root, named("img")))
		assert.NotEmpty(t, all(root, named("title")))
		for _, n := range all(root, func(*html.Node) bool { return true }) {
			for _, a := range n.Attr {
				assert.False(t, strings.HasPrefix(a.Key, "on"), "%s %s", n.Data, a.Key)
				assert.NotContains(t, a.Val, "javascript:")
			}
		}
		assert.NotContains(t, page, "\u202e")
		assert.NotContains(t, page, "\x1b")
		assert.True(t, utf8.ValidString(page))
		out := text(byID(root, "output-lines"))
		assert.Contains(t, out, "document.title='owned'", "it shows as text")
		assert.Contains(t, out, "30% red bright")
		assert.NotContains(t, out, "20%")
		assert.Contains(t, page, `<span class="a1 ab">red</span>`)
		assert.Contains(t, out, "1.0 MiB more")
	}
}

// A rank in the grid adds a line of its own to the charts, or takes it out, and keeps the rest of
// the address.
func TestChartedRanks(t *testing.T) {
	p := goodRun()
	p.Tasks.Filter.State, p.Output.Filter.Search = "running", "loss"
	p.Charted = []int{3}
	assert.Equal(t, "?chart=3%2C5&search=loss&state=running#usage", p.ChartURL(5))
	assert.Equal(t, "?search=loss&state=running#usage", p.ChartURL(3))
	p.Charted = []int{0, 1, 2, 3}
	assert.Equal(t, "?chart=1%2C2%2C3%2C5&search=loss&state=running#usage", p.ChartURL(5))
	var keys []string
	for _, key := range p.Charts()[0].Keys {
		keys = append(keys, key.Class+" "+key.Text)
	}
	assert.Equal(t, []string{"c-chosen0 rank 0", "c-chosen1 rank 1", "c-chosen2 rank 2", "c-chosen3 rank 3"}, keys[len(keys)-4:])
	p.Series = nil
	assert.Empty(t, p.ChartURL(5))
	file, _ := rendered(t, goodRun(), File)
	assert.NotContains(t, file, "chart=", "a file has no server")
}

// A page of a run of which nothing is known yet has all parts that a script fills in later.
func TestAPartialPage(t *testing.T) {
	parts := func(p *RunPage) (ids []string) {
		_, root := rendered(t, p, Live)
		for _, part := range all(root, func(n *html.Node) bool {
			return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-live" })
		}) {
			ids = append(ids, attribute(part, "id"))
		}
		return ids
	}
	partial := &RunPage{Frame: Frame{Partial: true}, ID: "iris", State: "asked for", Tone: Waits, Open: true}
	assert.NotEmpty(t, parts(partial))
	assert.Equal(t, parts(goodRun()), parts(partial))
	text, _ := rendered(t, partial, Live)
	assert.Contains(t, text, `<noscript><meta http-equiv="refresh" content="1"></noscript>`)
	assert.NotContains(t, text, "started")
	whole, _ := rendered(t, goodRun(), Live)
	assert.NotContains(t, whole, "<noscript>")
}
