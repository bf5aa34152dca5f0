package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/browser"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// linkOf returns the link to the pages that a command prints.
func linkOf(t *testing.T, p *harness.Process) (base, link string) {
	t.Helper()
	harness.Eventually(t, "the pages are served", func() bool { return strings.Contains(p.Stdout(), "?token=") })
	for word := range strings.FieldsSeq(p.Stdout()) {
		if strings.Contains(word, "?token=") {
			base, _, _ = strings.Cut(word, "/?")
			return base, word
		}
	}
	t.Fatal(p.Stdout())
	return "", ""
}

// A user finds a successful, a failed and a hanging run, filters them, and stops the last one
// with its button.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	dev := l.start("dev", "--port", "0", "--ui-port", "0")
	base, link := linkOf(t, dev)
	l.ok("run", "--remote", "--id", "good", "--", "true")
	l.fails(3, "run", "--remote", "--id", "bad", "-n", "2", "--", "bash", "-c",
		`[ $RANK = 0 ] || exec sleep 1000; echo "</pre><script>document.title = 'taken'</script>$RANK" >&2; seq 200000; echo "<b>ValueError</b>: no data" >&2; exit 3`)
	l.ok("submit", "--id", "hp", "--array", "seed=0..2", "--", "bash", "-c", `echo "{\"loss\": {seed}}" > $CLUSTERRUN_RESULT_FILE; [ {seed} != 1 ] || exit 3`)
	l.fails(1, "wait", "hp")
	l.ok("submit", "--id", "hangs", "-n", "3", "--", "bash", "-c", `echo "step $RANK"; sleep 1000`)

	chromium := browser.Start(t)
	p := chromium.Open(t, link)
	await := func(what, expression string) {
		t.Helper()
		harness.Eventually(t, what, func() (so bool) {
			p.Eval(fmt.Sprintf("(() => { try { return Boolean(%s) } catch { return false } })()", expression), &so)
			return so
		})
	}
	click := func(selector string) {
		t.Helper()
		await("there is "+selector, fmt.Sprintf("document.readyState == 'complete' && document.querySelector(%q)", selector))
		p.Eval(fmt.Sprintf("document.querySelector(%q).click()", selector), nil)
	}
	open := func(path string) {
		t.Helper()
		p.Eval(fmt.Sprintf("void (location.href = %q)", path), nil)
	}
	await("all runs are listed, the open one first", `[...document.querySelectorAll("#runs tbody th a")].map((a) => a.textContent).join() == "hangs,hp,bad,good"`)
	var address string
	p.Eval("location.href", &address)
	assert.Equal(t, base+"/", address, "without the token")
	click(`.filters a[href="/?state=failed"]`)
	await("only the failed one is listed", `[...document.querySelectorAll("#runs tbody th a")].map((a) => a.textContent).join() == "hp,bad"`)
	click(`#runs tbody th a[href="/runs/hp"]`)
	await("it lists the trials, the failed one first", `document.querySelector("#tasks tbody tr").innerText.includes("exit code 3")`)
	await("their results are read", `document.getElementById("tasks").innerText.includes("highest loss 2 in trial 2")`)
	click(`#tasks a[href="?sort=loss%3Amax#tasks"]`)
	await("the best one is first", `document.querySelector("#tasks tbody th a").href.endsWith("/runs/hp.2")`)
	click("#tasks tbody th a")
	await("it has a page", `document.getElementById("title").innerText == "hp.2"`)
	open("/runs/bad")
	await("its page says why", `document.getElementById("cause").innerText.includes("<b>ValueError</b>: no data")`)
	open("/hosts")
	await("the hosts have the run", `document.getElementById("hosts").innerText.includes("hangs")`)
	open("/runs/hangs")
	await("its output is there", `document.getElementById("output").innerText.includes("step 2")`)
	click(`form[action="/runs/hangs/stop"] button`)
	await("the page says that it has ended", `document.getElementById("head").innerText.includes("cancelled")`)
	assert.Empty(t, p.Problems())
	l.fails(130, "wait", "hangs")
	open("/runs/bad")
	click(`a[href="/namespaces/default/workflows/bad"]`)
	await("Temporal's Web UI shows the workflow", `document.body.innerText.includes("ClusterRun")`)
	p.Eval("location.href", &address)
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/namespaces/default/workflows/bad`, address)
	assert.NotContains(t, address, base)
	assert.NotContains(t, address, "token")
	assert.Empty(t, l.tasks())
	testAPageInAFile(t, l, chromium)
}

// A run's page in a file opens without a server. Markup from the run is escaped.
func testAPageInAFile(t *testing.T, l *local, chromium *browser.Browser) {
	file := filepath.Join(t.TempDir(), "bad.html")
	l.ok("export", "--format", "html", "bad", "-o", file)
	info := must.Get(os.Stat(file))(t)
	assert.Less(t, info.Size(), int64(5<<20))
	p := chromium.Open(t, "file://"+file)
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
	assert.Contains(t, shown.Cause, "<b>ValueError</b>: no data")
	assert.Contains(t, shown.Output, "</pre><script>document.title = 'taken'</script>0")
	assert.Greater(t, shown.Lines, 100)
	assert.Equal(t, 1, shown.Found)
	assert.Empty(t, p.Problems())
}

// Pages for another server, without buttons.
func TestPagesOfAnotherServer(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	s.StartWorker(t)
	s.OK(t, "submit", "--id", "sleeps", "--", "sleep", "1000")
	p := s.StartCLI(t, "ui", "--port", "0", "--read-only", "--temporal-ui", "http://temporal.example/ui/")
	base, link := linkOf(t, p)
	jar := must.Get(cookiejar.New(nil))(t)
	client := &http.Client{Jar: jar}
	client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		assert.Equal(t, "http://temporal.example/ui/namespaces/default/workflows/sleeps", r.URL.String())
		return http.ErrUseLastResponse
	}
	get := func(to string) (int, string) {
		answer := must.Get(client.Get(to))(t)
		defer answer.Body.Close()
		text := must.Get(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, string(text)
	}
	status, _ := get(base + "/")
	assert.Equal(t, http.StatusUnauthorized, status)
	_, _ = get(link)
	status, text := get(base + "/runs/sleeps")
	assert.Equal(t, http.StatusOK, status, text)
	assert.Contains(t, text, `href="/namespaces/default/workflows/sleeps"`)
	status, _ = get(base + "/namespaces/default/workflows/sleeps")
	assert.Equal(t, http.StatusFound, status)
	assert.NotContains(t, text, "<form method=\"post\"")
	answer := must.Get(client.PostForm(base+"/runs/sleeps/stop", url.Values{}))(t)
	answer.Body.Close()
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
	status, text = get(base + "/runs/none")
	assert.Equal(t, http.StatusNotFound, status, text)
	s.OK(t, "stop", "--wait", "sleeps")
}
