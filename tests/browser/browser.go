// Package browser opens pages in a headless Chromium for tests, over the DevTools protocol on a
// pipe: see https://chromedevtools.github.io/devtools-protocol/.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// bound limits the time for a request on a busy machine.
const bound = 90 * time.Second

// Browser is a running Chromium.
type Browser struct {
	in io.Writer

	mu      sync.Mutex
	next    int
	answers map[int]chan message
	pages   map[string]*Page // by session
}

// Page is an open page.
type Page struct {
	t       testing.TB
	b       *Browser
	session string
	loaded  chan struct{}

	mu       sync.Mutex
	problems []string
	// cutOff reports whether the browser canceled requests because other tests added or removed
	// network interfaces. Eval reloads such a page.
	cutOff bool
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Start starts a browser that runs until the test finishes. The test is skipped if Chromium is not
// installed.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("Chromium is not installed")
	}
	home := must.Get(os.MkdirTemp("", "chromium"))(t)
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	_, _ = theirIn.Close(), theirOut.Close()
	b := &Browser{in: in, answers: map[int]chan message{}, pages: map[string]*Page{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(out)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = in.Close()
		<-read
		_ = os.RemoveAll(home)
	})
	return b
}

// read receives messages until the browser exits.
func (b *Browser) read(out *os.File) {
	defer out.Close()
	for r := bufio.NewReader(out); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, p := b.answers[m.ID], b.pages[m.Session]
		delete(b.answers, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m.message
		case p != nil:
			p.event(m.Method, m.Params)
		}
	}
}

// call sends a request that must succeed.
func (b *Browser) call(t testing.TB, session, method string, params, result any) {
	t.Helper()
	require.Empty(t, b.ask(t, session, method, params, result), method)
}

// ask sends a request, and stores its result in result unless that is nil. It returns errors from
// Chromium.
func (b *Browser) ask(t testing.TB, session, method string, params, result any) (problem string) {
	t.Helper()
	b.mu.Lock()
	b.next++
	answer := make(chan message, 1)
	b.answers[b.next] = answer
	text, err := json.Marshal(message{ID: b.next, Session: session, Method: method, Params: params})
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	b.mu.Unlock()
	require.NoError(t, err)
	select {
	case m := <-answer:
		if result != nil && len(m.Error) == 0 {
			require.NoError(t, json.Unmarshal(m.Result, result))
		}
		return string(m.Error)
	case <-time.After(bound):
		require.Fail(t, "Chromium does not answer", method)
	}
	return ""
}

// Open opens a URL.
func (b *Browser) Open(t testing.TB, address string) *Page {
	t.Helper()
	var target struct{ TargetID string }
	b.call(t, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call(t, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{t: t, b: b, session: attached.SessionID, loaded: make(chan struct{}, 1)}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.call(domain+".enable", nil, nil)
	}
	p.call("Page.navigate", map[string]any{"url": address}, nil)
	p.awaitLoaded()
	return p
}

// Resize sets the window width. dark selects dark colors.
func (p *Page) Resize(width int, dark bool) {
	p.t.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

func (p *Page) call(method string, params, result any) {
	p.t.Helper()
	p.b.call(p.t, p.session, method, params, result)
}

// event records errors caused by the page.
func (p *Page) event(method string, params json.RawMessage) {
	problem := ""
	switch method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default: // Open waits for the first, and whole for the next
		}
	case "Runtime.exceptionThrown":
		problem = string(params)
	case "Log.entryAdded":
		var e struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(params, &e) == nil && (e.Entry.Level == "error" || e.Entry.Level == "warning") {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	case "Runtime.consoleAPICalled":
		problem = string(params)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutOff = p.cutOff || strings.Contains(problem, "net::ERR_NETWORK_CHANGED")
	if problem != "" && !p.cutOff {
		p.problems = append(p.problems, problem)
	}
}

// whole reloads the page if the browser canceled some of its requests.
func (p *Page) whole() {
	p.t.Helper()
	p.mu.Lock()
	cutOff := p.cutOff
	p.cutOff = false
	p.mu.Unlock()
	if !cutOff {
		return
	}
	select {
	case <-p.loaded: // earlier
	default:
	}
	p.call("Page.reload", nil, nil)
	p.awaitLoaded()
}

func (p *Page) awaitLoaded() {
	p.t.Helper()
	select {
	case <-p.loaded:
	case <-time.After(bound):
		require.Fail(p.t, "the page does not load")
	}
}

// Problems returns the errors and messages caused by the page.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.problems...)
}

// Eval evaluates an expression in the page, waits if it is a promise, and stores its value in
// result unless that is nil.
func (p *Page) Eval(expression string, result any) {
	p.t.Helper()
	p.whole()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	for {
		problem := p.b.ask(p.t, p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
		if problem == "" {
			break
		}
		require.Contains(p.t, problem, "navigated", expression)
		if result == nil {
			return // the expression itself may have navigated
		}
	}
	require.Empty(p.t, string(answer.ExceptionDetails), expression)
	if result != nil {
		require.NoError(p.t, json.Unmarshal(answer.Result.Value, result), expression)
	}
}

// Overflow returns the elements that make the page wider than its window.
func (p *Page) Overflow() (wide []string) {
	p.t.Helper()
	p.Eval(`(() => {
		const root = document.documentElement;
		if (root.scrollWidth <= innerWidth) return [];
		return ["page: " + root.scrollWidth].concat([...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
			.slice(0, 8).map((e) => e.tagName + "." + (e.getAttribute("class") || e.id) + ": " + Math.round(e.getBoundingClientRect().right)));
	})()`, &wide)
	return wide
}

// Screenshot saves a full-page picture, limited in height.
func (p *Page) Screenshot(file string, height int) {
	p.t.Helper()
	var size struct{ W, H int }
	p.Eval(`({W: innerWidth, H: document.documentElement.scrollHeight})`, &size)
	var shot struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{
		"captureBeyondViewport": true,
		"clip":                  map[string]any{"x": 0, "y": 0, "width": size.W, "height": min(height, size.H), "scale": 1},
	}, &shot)
	png := must.Get(base64.StdEncoding.DecodeString(shot.Data))(p.t)
	require.NoError(p.t, os.WriteFile(file, png, 0o600), fmt.Sprintf("%d bytes", len(png)))
}
