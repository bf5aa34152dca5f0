package page

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/tests/browser"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// rendered returns a page's HTML and its parsed tree.
func rendered(t testing.TB, p *RunPage, m Mode) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, RenderRun(&b, p, m))
	root := must.Get(html.Parse(strings.NewReader(b.String())))(t)
	return b.String(), root
}

// all returns the elements that satisfy wanted.
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

// rows returns the grid's rows as strings.
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
	assert.Len(t, all(byID(root, "metrics"), named("figure")), 2)
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
	// The culprit's lines are shown in its tone.
	lines := all(byID(root, "output"), classed("l"))
	assert.Contains(t, attribute(lines[len(lines)-1], "class"), "t-culprit")
	// Each state is shown by a word and a symbol, so it does not depend on color.
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
	// Every other task is one link away.
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
	assert.Contains(t, text(byID(root, "tasks")), "The worst 2000 of 10000 tasks; this file omits the rest.")
}

// sweepOf returns a sweep's page. The first trials have failed, and the last ones are running.
func sweepOf(trials, failed, running int) *RunPage {
	p := &RunPage{Frame: Frame{At: noon, Zone: time.UTC}, Status: &starter.Status{RunID: "hp", Open: true}, State: "running", Tone: Active, Sweep: &Sweep{Names: []string{"lr", "note"}}}
	for i := range trials {
		t := starter.Trial{
			Trial: i, RunID: spec.TrialID("hp", i), ExecutionID: "e", State: "succeeded", ExitCode: new(int), Seconds: 90, Started: noon,
			Parameters: map[string]string{"lr": fmt.Sprint(i), "note": "<b>"}, Progress: &spec.Progress{Current: 5, Metrics: map[string]float64{"loss": float64(10 + i%7)}},
		}
		switch {
		case i < failed:
			t.State, t.Error, *t.ExitCode = "failed", "ValueError: <nan>", 3
		case i >= trials-running:
			t.State, t.ExitCode = "running", nil
		default:
			t.Value = []byte(fmt.Sprintf(`{"eval": %d}`, i))
		}
		p.Sweep.Trials = append(p.Sweep.Trials, t)
	}
	return p
}

func TestASweep(t *testing.T) {
	p := sweepOf(30, 2, 3)
	p.Sweep.Missing = 4
	_, root := rendered(t, p, Live)
	assert.Contains(t, text(byID(root, "head")), "hp running 30 trials")
	assert.Nil(t, byID(root, "output"))
	grid := rows(root)
	require.Len(t, grid, 30)
	assert.Equal(t, "0 failed exit code 3 0 <b> 10 5 1m 30s ValueError: <nan>", grid[0])
	assert.Equal(t, "27 running 27 <b> 16 5 1m 30s", grid[2])
	assert.Equal(t, "2 succeeded 2 <b> 2 12 5 1m 30s", grid[5])
	tasks := text(byID(root, "tasks"))
	assert.Contains(t, tasks, "2 failed 3 running 25 succeeded")
	assert.Contains(t, tasks, "lowest eval 2 in trial 2 lr=2 note=<b> highest eval 26 in trial 26")
	assert.Contains(t, tasks, "lowest loss 10 in trial 7")
	assert.Contains(t, tasks, "4 more results are being read.")
	links := func(root *html.Node) (to []string) {
		for _, a := range all(byID(root, "tasks"), named("a")) {
			to = append(to, attribute(a, "href"))
		}
		return to
	}
	assert.Contains(t, links(root), "/runs/hp.27")
	assert.Contains(t, links(root), "?state=failed#tasks")
	assert.Contains(t, links(root), "?sort=loss%3Amin#tasks")

	p.Tasks.Filter.State, p.Sweep.Order = "succeeded", sweep.Order{Key: "eval", Max: true}
	_, root = rendered(t, p, Live)
	grid = rows(root)
	require.Len(t, grid, 25)
	assert.True(t, strings.HasPrefix(grid[0], "26 succeeded"), grid[0])
	assert.Contains(t, links(root), "?sort=eval%3Amax&state=failed#tasks", "the order is kept")
	_, root = rendered(t, p, File)
	assert.NotContains(t, links(root), "/runs/hp.27")

	trial := runOf(1)
	trial.TrialOf = "hp"
	_, root = rendered(t, trial, Live)
	assert.Equal(t, "/runs/hp", attribute(all(byID(root, "head"), named("a"))[0], "href"))
}

// A large sweep shows a square for each trial, and rows for those that matter or are the best.
func TestALargeSweep(t *testing.T) {
	p := sweepOf(2000, 3, 10)
	_, root := rendered(t, p, Live)
	assert.Len(t, all(all(root, classed("squares"))[0], named("i")), 2000)
	require.Len(t, rows(root), 13)
	assert.Contains(t, text(byID(root, "tasks")), "The 13 trials that matter most. all 2000")
	p.Sweep.Order = sweep.Order{Key: "loss"}
	_, root = rendered(t, p, Live)
	require.Len(t, rows(root), mattering)
	assert.Contains(t, text(byID(root, "tasks")), "The 50 trials with the lowest loss. all 2000")
	p.Tasks.Filter.Page = 2
	_, root = rendered(t, p, Live)
	assert.Contains(t, text(byID(root, "tasks")), "201 to 400 of 1997 trials")
	p.Sweep = &Sweep{}
	_, root = rendered(t, p, Live)
	assert.Contains(t, text(byID(root, "tasks")), "The trials are being read.")
}

func TestAHostThatIsAway(t *testing.T) {
	_, root := rendered(t, awayRun(), Live)
	assert.Contains(t, text(byID(root, "notices")), "gpu-2 has sent nothing")
	assert.True(t, strings.HasPrefix(rows(root)[0], "16 worker-16 missing"))
	assert.Contains(t, text(byID(root, "output")), "connection refused")
}

// A page has landmarks, captions, table headers and one top-level heading.
func TestStructure(t *testing.T) {
	for name, p := range map[string]*RunPage{"good": goodRun(), "failed": failedRun(), "hanging": hangingRun(), "large": largeRun(), "empty": {Status: &starter.Status{RunID: "x", Open: true}, State: "placing", Tone: Waits}} {
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

// A file is self-contained, and works without a server.
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

// hostileRun returns a run with markup in every string that must not become part of the page.
func hostileRun() *RunPage {
	const evil = "</script></style></title><script>document.title='owned'</script><img src=x onerror=alert(1)>\" onmouseover='x'\u202e\x1b]0;x\a\xff"
	p := failedRun()
	p.RunID, p.Name, p.Owner, p.Command, p.Dir, p.State = "iris"+evil, evil, evil, strings.Repeat(evil, 20), evil, "failed"
	p.Cause = &Cause{Sentence: evil, Task: evil, Host: evil, Words: evil + "\n" + evil, FirstError: evil, Details: []string{evil}}
	p.Notices = []outcome.Fact{{Severity: outcome.Warning, Text: evil, Items: []string{evil}}}
	for i := range p.Tasks.All {
		t := &p.Tasks.All[i]
		t.Name, t.Host, t.How, t.LastLine = evil, evil, evil, evil
	}
	long := strings.Repeat("W", 1<<20)
	p.Output = Output{Cut: evil, Missing: []string{evil}, Lines: []OutputLine{
		{Task: evil, Text: evil, Count: 1}, {Task: "w", Text: "<img src=x onerror=alert(1)>", Count: 1}, {Task: "w", Text: long, Count: 1}, {Task: "w", Text: "10%\r20%\r30%\x1b[2K\x1b[31;1mred\x1b[0m \x1b[38;5;196mbright\x1b[m\x1b[999", Count: 1},
	}}
	p.Timeline.Events = []Event{{noon, evil, Bad}}
	p.Timeline.Spans = append(p.Timeline.Spans, Span{evil, evil, noon.Add(-time.Minute), noon, Bad})
	p.Stacks = &stacktree.Findings{Sentence: evil, Classes: []stacktree.Class{{Count: 1, Ranks: stacktree.RanksOf(0), Place: []stacktree.Frame{{Kind: stacktree.Python, Function: evil, File: evil, Line: 3}}}}}
	p.Barriers = []Barrier{{Barrier: barriers.Barrier{Name: evil, Missing: []barriers.Missing{{BarrierMissing: spec.BarrierMissing{Task: evil}, Host: evil}}}}}
	p.Spec, p.Metrics[0].Name = evil, evil
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
		assert.Contains(t, out, "30%red bright")
		assert.NotContains(t, out, "20%")
		assert.Contains(t, out, "1.0 MiB more")
	}
}

// The page of a completely unknown run contains all the parts that a script fills in later.
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
	partial := &RunPage{Frame: Frame{Partial: true}, Status: &starter.Status{RunID: "iris", Open: true}, State: "requested", Tone: Waits}
	assert.NotEmpty(t, parts(partial))
	assert.Equal(t, parts(goodRun()), parts(partial))
	text, _ := rendered(t, partial, Live)
	assert.Contains(t, text, `<noscript><meta http-equiv="refresh" content="1"></noscript>`)
	assert.NotContains(t, text, "started")
	whole, _ := rendered(t, goodRun(), Live)
	assert.NotContains(t, whole, "<noscript>")
}

// Pages in files fit windows of three sizes, in light and dark, without errors. If PAGE_SHOTS
// names a directory, pictures of them are written to it.
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
			opened.Eval(`[document.querySelector("h1").textContent, getComputedStyle(document.body).fontSize, !document.querySelector("[data-filter]").hidden].join()`, &said)
			assert.Equal(t, spec.OneLine(p.RunID)+",14px,true", said, "the style and the script are in the file, and allowed")
			if shots != "" {
				opened.Screenshot(filepath.Join(shots, fmt.Sprintf("%s-%d.png", name, width)), 3600)
			}
		}
	}
}

func runsPage() *RunsPage {
	p := &RunsPage{
		Filters: []Filter{{Label: "State", Links: []Link{{Text: "All", URL: "/", Current: true}, {Text: "Open", URL: "/?state=open"}}}},
		Open:    []RunRow{{Summary: starter.Summary{RunID: "iris-x2k4", Started: noon.Add(-time.Minute)}, State: "running", Tone: Active, Owner: Link{Text: "ada@node", URL: "/?user=ada%40node"}, Hosts: []Link{{Text: "gpu-1", URL: "/?host=gpu-1"}}, MoreHosts: 7}},
		Ended:   []RunRow{{Summary: starter.Summary{RunID: "mnist-8ab3", Started: noon.Add(-time.Hour), Ended: noon.Add(-30 * time.Minute), Restarts: 2}, State: "failed", Tone: Bad, Why: "out of memory"}},
		Older:   "/?before=x",
	}
	p.At, p.Title, p.Nav = noon, "Runs", []Link{{Text: "Runs", URL: "/", Current: true}}
	return p
}

func tree(t *testing.T, write func(*bytes.Buffer) error) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	root := must.Get(html.Parse(bytes.NewReader(b.Bytes())))(t)
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

// Users' text stays text everywhere, and no page requires what its policy forbids.
func TestHostileLists(t *testing.T) {
	p := runsPage()
	plain := strings.ReplaceAll(hostile, "\x1b", "") // a form sends its values back unchanged
	p.Name, p.Kept = plain, []Field{{Name: "user", Value: plain}}
	p.Filters[0].Links[1] = Link{Text: hostile, URL: "javascript:alert(1)"}
	p.Open[0] = RunRow{Summary: starter.Summary{RunID: hostile, Command: hostile, Tasks: hostile}, State: "running", Why: hostile, Owner: Link{Text: hostile, URL: "javascript:alert(1)"}, Hosts: []Link{{Text: hostile, URL: "javascript:alert(1)"}}}
	hosts := &HostsPage{
		Frame: Frame{At: noon}, Queue: hostile,
		Hosts: []Host{{fleet.HostStatus{
			Host:  fleet.Host{Name: hostile, GPUs: []fleet.GPU{{Model: hostile}}, Version: hostile, Checks: []string{hostile}, Failing: []fleet.FailedCheck{{Check: hostile, Reason: hostile}}},
			State: "ready", Reason: hostile, Holds: []fleet.Holding{{Run: fleet.Run{WorkflowID: hostile}}},
		}}},
		Waiting: []fleet.Waiting{{Run: fleet.Run{WorkflowID: hostile}, Why: hostile}},
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

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// runOf returns an open run with eight tasks per host.
func runOf(n int) *RunPage {
	p := &RunPage{
		Frame: Frame{At: noon, Version: "1.2.3", Refresh: 2 * time.Second, Nav: []Link{{Text: "Runs", URL: "/", Current: true}, {Text: "Hosts", URL: "/hosts"}}, TemporalURL: "/namespaces/default/workflows"},
		Status: &starter.Status{
			RunID: "iris-x2k4", ExecutionID: "0191-aa", Open: true, Started: noon.Add(-42 * time.Minute),
			Owner: "ada", Command: "python -u train.py --config configs/iris-large.yaml --batch-size 64 --precision bf16", Dir: "/home/ada/iris",
		},
		State: "running", Tone: Active, Hosts: (n + 7) / 8,
		Spec: "version: 1\nname: iris\nhosts: 6\ntasks:\n- type: worker\n  count: 48\n  command: [python, -u, train.py]\n",
	}
	p.Progress = &Progress{Least: .47, Most: .49, Left: 45 * time.Minute, Message: "epoch 4"}
	for i := range n {
		p.Tasks.All = append(p.Tasks.All, Task{
			TaskStatus: &starter.TaskStatus{
				TaskStatus: spec.TaskStatus{Rank: i, Name: fmt.Sprintf("worker-%d", i), Host: fmt.Sprintf("gpu-%d", i/8)}, PID: 41200 + i,
				Progress: &spec.Progress{Current: 4700 + float64(i%3), Total: 10000}, Steps: &spec.StepTime{Seconds: .31}, LastOutput: noon.Add(-time.Duration(i%5) * time.Second),
				Usage: &spec.LiveUsage{CPUs: 6.5 + float64(i%4)/4, RSSBytes: 41 << 30, GPUs: .97, GPUMemoryBytes: 71 << 30},
			},
			State: "running", Tone: Active, LastLine: fmt.Sprintf("step 4700  loss 2.%d  lr 3e-4", 300+i%90),
		})
	}
	lines := []OutputLine{}
	for s := range 30 {
		for r := range 2 {
			text := fmt.Sprintf("step %d  loss %.4f", 4670+s, 2.31-float64(s)/900)
			line := OutputLine{At: noon.Add(time.Duration(s-30) * 2 * time.Second), Task: "worker-0", Ranks: "0", Count: 1, Text: text, Tone: Active}
			switch {
			case r == 0 && s%10 != 3:
				continue
			case r == 0:
				line.Text = fmt.Sprintf("\x1b[32mcheckpoint\x1b[0m written to s3://iris/ckpt-%d in 3.1 s", 4670+s)
			case n > 1:
				line.Ranks, line.Count = fmt.Sprintf("0-%d", n-1), n
			}
			lines = append(lines, line)
		}
	}
	p.Output = Output{Lines: lines}
	p.Timeline = Timeline{From: p.Started, To: noon, Spans: []Span{
		{"run", "queued", p.Started, p.Started.Add(2 * time.Minute), Waits}, {"run", "placing", p.Started.Add(2 * time.Minute), p.Started.Add(3 * time.Minute), Waits},
		{"run", "running", p.Started.Add(3 * time.Minute), noon, Active},
		{"attempts of the group", "attempt 0", p.Started.Add(3 * time.Minute), p.Started.Add(17 * time.Minute), Muted}, {"attempts of the group", "attempt 1", p.Started.Add(18 * time.Minute), noon, Active},
	}, Events: []Event{{p.Started, "started by ada", Active}, {p.Started.Add(17 * time.Minute), "worker-9 on gpu-1 was lost with its host; the group restarted (attempt_1)", Warning}}}
	p.Restarts = 1
	p.Metrics = metricsOf(min(n, 48))
	return p
}

// metricsOf returns made-up metrics with gaps.
func metricsOf(tasks int) []Metric {
	all := []Metric{{Name: "acc", From: noon.Add(-time.Hour), To: noon}, {Name: "loss", From: noon.Add(-time.Hour), To: noon}}
	for k := range all {
		for r := range tasks {
			values := make([]float64, maxTimes)
			for i := range values {
				if values[i] = math.Sin(float64(i)/7 + float64(r)); i > 50 && i < 55 {
					values[i] = math.NaN()
				}
			}
			all[k].Tasks = append(all[k].Tasks, values)
		}
	}
	return all
}

func goodRun() *RunPage {
	p := runOf(48)
	p.State, p.Tone, p.Open, p.Ended, p.Progress, p.Refresh = "succeeded", Good, false, noon, nil, 0
	for i := range p.Tasks.All {
		p.Tasks.All[i].State, p.Tasks.All[i].Tone, p.Tasks.All[i].How = "ended", Good, ""
	}
	return p
}

const traceback = `Traceback (most recent call last):
  File "/home/ada/iris/train.py", line 212, in <module>
    main()
  File "/home/ada/iris/train.py", line 188, in main
    batch = next(batches)
  File "/home/ada/iris/data.py", line 88, in __next__
    raise ValueError(f"shard {self.shard} is corrupt")
ValueError: shard 17 is corrupt`

func failedRun() *RunPage {
	p := runOf(48)
	p.State, p.Tone, p.Open, p.Ended, p.ExitCode, p.Progress, p.Refresh = "failed", Bad, false, noon, 1, nil, 0
	p.Cause = &Cause{
		Sentence: "Subprocess worker-17 exited with exit code 1: ValueError: shard 17 is corrupt (data.py:88)", Task: "worker-17", Rank: 17, Host: "gpu-2", PID: 41217,
		At: noon.Add(-3 * time.Second), Words: traceback, FirstError: "ValueError: shard 17 is corrupt (data.py:88)",
		Details: []string{"1 other failed after it: worker-3 on gpu-0 (exit code 1, 310ms later)", "46 were stopped because of it: worker-0, worker-1, worker-2, worker-4 and 42 more"},
	}
	for i := range p.Tasks.All {
		p.Tasks.All[i].State, p.Tasks.All[i].Tone, p.Tasks.All[i].How = "stopped", Muted, "because of worker-17"
	}
	p.Tasks.All[17].State, p.Tasks.All[17].Tone, p.Tasks.All[17].How = "failed", Culprit, "exit code 1"
	p.Tasks.All[3].State, p.Tasks.All[3].Tone, p.Tasks.All[3].How = "failed", Bad, "exit code 1"
	for i, line := range []string{"Traceback (most recent call last):", `  File "/home/ada/iris/data.py", line 88, in __next__`, "\x1b[1;31mValueError\x1b[0m: shard 17 is corrupt"} {
		p.Output.Lines = append(p.Output.Lines, OutputLine{At: noon.Add(time.Duration(i)*time.Millisecond - 3*time.Second), Task: "worker-17", Rank: 17, Ranks: "17", Count: 1, Stderr: true, Text: line, Tone: Culprit})
	}
	p.Timeline.Events = append(p.Timeline.Events, Event{noon.Add(-3 * time.Second), "worker-17 on gpu-2 exited with exit code 1", Culprit}, Event{noon, "failed", Bad})
	return p
}

func hangingRun() *RunPage {
	p := runOf(48)
	var others []int
	for i := range p.Tasks.All {
		if i != 17 {
			others = append(others, i)
		}
		p.Tasks.All[i].LastOutput, p.Tasks.All[i].Usage.CPUs = noon.Add(-11*time.Minute), 1
	}
	p.Tasks.All[17].State, p.Tasks.All[17].Tone, p.Tasks.All[17].How = "silent", Warning, "for 11m 00s"
	p.Stacks = &stacktree.Findings{Total: 48, Sentence: "rank 17 on gpu-2 holds the others up: it sleeps in load_batch, 47 wait in all_reduce", Outliers: stacktree.RanksOf(17), Classes: []stacktree.Class{
		{Ranks: stacktree.RanksOf(others...), Count: 47, Wait: stacktree.Wait{Reason: stacktree.Collective, Name: "all_reduce"}, Place: []stacktree.Frame{{Kind: stacktree.Python, Function: "step", File: "train.py", Line: 144}, {Kind: stacktree.Python, Function: "main", File: "train.py", Line: 190}}},
		{Ranks: stacktree.RanksOf(17), Count: 1, Outlier: true, Wait: stacktree.Wait{Reason: "sleep", Name: "sleep"}, Place: []stacktree.Frame{{Kind: stacktree.Python, Function: "load_batch", File: "data.py", Line: 61}}},
	}}
	b := Barrier{Barrier: barriers.Barrier{Name: "epoch", Round: 4, Opened: noon.Add(-11 * time.Minute), Missing: []barriers.Missing{{BarrierMissing: spec.BarrierMissing{Task: "worker-17", Since: noon.Add(-11 * time.Minute)}, Host: "gpu-2", State: "running"}}}, MoreWaiting: 39}
	for i := range 8 {
		b.Waiting = append(b.Waiting, spec.BarrierWaiter{Task: p.Tasks.All[i].Name, Host: p.Tasks.All[i].Host, Since: noon.Add(-10 * time.Minute)})
	}
	p.Barriers = []Barrier{b}
	p.Notices = []outcome.Fact{{Severity: outcome.Warning, Text: "worker-17 has been silent for 11m 00s; the run allows 10m 00s."}}
	p.Actions = []Action{{Name: "stacks", Label: "Stacks", URL: "/runs/iris-x2k4/stacks", Question: "Capture the stacks of all tasks?", Effect: "The processes pause for a moment."}, {Name: "stop", Label: "Stop", URL: "/runs/iris-x2k4/stop", Danger: true, Question: "Stop the run?", Effect: "48 tasks get SIGTERM, and 30 s to end."}}
	return p
}

func largeRun() *RunPage {
	p := runOf(2000)
	for i := range p.Tasks.All {
		switch {
		case i == 1234:
			p.Tasks.All[i].State, p.Tasks.All[i].Tone, p.Tasks.All[i].How, p.Tasks.All[i].Restarts = "restarting", Warning, "exit code 1", 3
		case i == 77:
			p.Tasks.All[i].Slow, p.Tasks.All[i].Steps.Seconds = 1.8, .56
		case i >= 1990:
			p.Tasks.All[i].State, p.Tasks.All[i].Tone = "pending", Waits
		}
	}
	return p
}

// awayRun returns a run with a host that does not answer.
func awayRun() *RunPage {
	p := runOf(48)
	for i := 16; i < 24; i++ {
		p.Tasks.All[i].State, p.Tasks.All[i].Tone = "missing", Warning
	}
	p.Notices = []outcome.Fact{{Severity: outcome.Warning, Text: "gpu-2 has sent nothing for 1m 20s; the run gives it up in 3m 40s"}}
	p.Output.Missing = []string{"worker-16 to worker-23 on gpu-2: connection refused"}
	return p
}
