package taskapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// together is a run with tasks that stop together. It sends its decisions to other hosts only when
// a test asks.
type together struct {
	mu     sync.Mutex
	now    spec.Stopping
	keys   map[string]bool
	wishes []wished
	refuse error
	held   chan struct{}
	asked  chan context.Context // each request's context on arrival
}

type wished struct {
	spec.TogetherRequest
	by runkey.Task
}

func newTogether() *together {
	return &together{keys: map[string]bool{}, asked: make(chan context.Context, 100)}
}

func (r *together) RequestStop(ctx context.Context, by runkey.Task, wish spec.TogetherRequest) (spec.Stopping, error) {
	r.mu.Lock()
	held := r.held
	r.mu.Unlock()
	select {
	case r.asked <- ctx:
	default:
	}
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return spec.Stopping{}, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return spec.Stopping{}, r.refuse
	}
	if r.keys[wish.Key] {
		return r.now, nil
	}
	r.keys[wish.Key] = true
	r.wishes = append(r.wishes, wished{wish, by})
	if !r.now.Stop {
		clean := wish.Error != nil && wish.Error.Kind == "StopIteration"
		r.now = spec.Stopping{Seq: r.now.Seq + 1, Stop: true, By: wish.Task, Reason: wish.Reason, Error: wish.Error, Clean: clean}
	}
	return r.now, nil
}

// heard returns the requests accepted by the run.
func (r *together) heard() []wished {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wishes)
}

// wish returns the only accepted request.
func (r *together) wish(t *testing.T) wished {
	t.Helper()
	all := r.heard()
	require.Len(t, all, 1)
	return all[0]
}

// hold makes requests wait until release is called or their task is gone.
func (r *together) hold() (release func()) {
	held := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = held
	for len(r.asked) > 0 {
		<-r.asked
	}
	return func() { close(held) }
}

// refuses makes the run refuse all further requests.
func (r *together) refuses(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = errors.New(why)
}

// newStopping returns a host with a stoppable run.
func newStopping(t testing.TB, workers int) (*host, *together) {
	t.Helper()
	r := newTogether()
	return newHostWith(t, workers, r), r
}

// stop sends a request like any HTTP client.
func (h *host) stop(i int, method, query, body string) wire.Stopping {
	h.t.Helper()
	status, text, _ := h.do(i, method, wire.PathStop+query, body)
	require.Equal(h.t, 200, status, text)
	s := must.JSON[wire.Stopping](h.t, text)
	return s
}

func shortContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Like coordinators, with tasks instead of threads.
func TestTasksStop_CO01(t *testing.T) {
	h, r := newStopping(t, 2)
	asks, other := h.task(0), h.task(1)
	ctx := testContext(t)
	for _, c := range []*task.Task{asks, other} {
		assert.False(t, c.ShouldStop())
		_, err := c.WaitForStop(shortContext(t))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, asks.RequestStop(ctx, nil))
	assert.True(t, asks.ShouldStop(), "who asked finds it at once")
	for _, c := range []*task.Task{asks, other} {
		s := must.Get(c.WaitForStop(ctx))(t)
		assert.Equal(t, task.Stopping{Seq: 1, Stop: true, By: "worker-0"}, s)
		assert.True(t, c.ShouldStop())
	}
	wish := r.wish(t)
	assert.Equal(t, "worker-0", wish.Task)
	assert.NotEmpty(t, wish.Key)
	assert.Nil(t, wish.Error)
	assert.Equal(t, h.ids[0], wish.by)
}

// All waiting tasks get an answer when a task on another host requests a stop.
func TestTasksStopLater_CO02(t *testing.T) {
	h, _ := newStopping(t, 4)
	ctx := testContext(t)
	var all sync.WaitGroup
	for i := range 4 {
		c := h.task(i)
		assert.False(t, c.ShouldStop())
		all.Go(func() {
			s, err := c.WaitForStop(ctx)
			assert.NoError(t, err)
			assert.Equal(t, "ps-0", s.By)
			assert.True(t, c.ShouldStop())
		})
	}
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Stop: true, By: "ps-0"})
	all.Wait()
	assert.Equal(t, "ps-0", h.stop(0, "GET", "?wait=1h", "").By, "without waiting: a stop stands")
}

func TestWhatATaskIsTold(t *testing.T) {
	h, _ := newStopping(t, 1)
	asked := time.Now().Add(time.Hour) // the run's clock differs
	h.SetStopping(h.run, spec.Stopping{
		Seq: 3, Stop: true, By: "worker-7", Reason: "r", Asked: asked, Deadline: asked.Add(2 * time.Minute), Clean: true,
		Error: &spec.TogetherError{Kind: "StopIteration", Message: "m", Traceback: "t"},
	})
	s := h.stop(0, "GET", "", "")
	assert.Equal(t, wire.Stopping{
		Seq: 3, Stop: true, By: "worker-7", Reason: "r", Clean: true, Error: &wire.Error{Kind: "StopIteration", Message: "m", Traceback: "t"},
		Deadline: asked.Add(2 * time.Minute).UTC().Format(time.RFC3339Nano), Left: 120,
	}, s, "no more time than there ever was")

	assert.InDelta(t, 60, asAnswer(spec.Stopping{Stop: true, Asked: asked, Deadline: asked.Add(2 * time.Minute)}, asked.Add(time.Minute)).Left, 0.001)
	assert.Zero(t, asAnswer(spec.Stopping{Stop: true, Asked: asked, Deadline: asked.Add(time.Minute)}, asked.Add(time.Hour)).Left)
	h.SetStopping(h.run, spec.Stopping{Seq: 4, Deadline: asked})
	assert.Equal(t, wire.Stopping{Seq: 4}, h.stop(0, "GET", "", ""))
}

// The run decides who was first, and receives everything it needs for that.
func TestTheErrorOfAStop(t *testing.T) {
	for name, c := range map[string]struct {
		err                error
		kind, message, has string
	}{
		"an error":       {fmt.Errorf("no space: %w", &net.OpError{Op: "write", Err: errors.New("x")}), "", "no space: write: x", "TestTheErrorOfAStop"},
		"with a type":    {&json.SyntaxError{}, "*json.SyntaxError", "", "TestTheErrorOfAStop"},
		"the end (CO10)": {fmt.Errorf("shard 3: %w", io.EOF), "EOF", "shard 3: EOF", "TestTheErrorOfAStop"},
		"a broken end":   {io.ErrUnexpectedEOF, "", "unexpected EOF", "TestTheErrorOfAStop"},
	} {
		t.Run(name, func(t *testing.T) {
			h, r := newStopping(t, 1)
			require.NoError(t, h.task(0).RequestStop(testContext(t), c.err))
			wish := r.wish(t)
			require.NotNil(t, wish.Error)
			assert.Equal(t, c.kind, wish.Error.Kind)
			assert.Equal(t, c.message, wish.Error.Message)
			assert.Contains(t, wish.Error.Traceback, c.has)
		})
	}
}

// Strings that are too long for the run are shortened. A request is refused only if it is too long
// to read.
func TestLongStops(t *testing.T) {
	h, r := newStopping(t, 1)
	long := strings.Repeat("ü", 5<<20)
	_, err := h.task(0).Stop(testContext(t), task.Stop{Reason: long, Error: &task.Report{Kind: strings.Repeat("k", 1000), Message: long, Traceback: long + "end"}})
	require.NoError(t, err)
	wish := r.wish(t)
	assert.InDelta(t, wire.MaxStopText, len(wish.Reason), 3)
	assert.InDelta(t, wire.MaxStopText, len(wish.Error.Message), 3)
	assert.True(t, strings.HasPrefix(wish.Error.Message, "ü") && strings.HasSuffix(wish.Error.Message, "…"), "of a message its beginning")
	assert.InDelta(t, wire.MaxStopTraceback, len(wish.Error.Traceback), 3)
	assert.True(t, strings.HasPrefix(wish.Error.Traceback, "ü") && strings.HasSuffix(wish.Error.Traceback, "üend"), "of a traceback both ends")
	assert.Contains(t, wish.Error.Traceback, "bytes omitted")
	assert.Len(t, wish.Error.Kind, maxKind)
	b := must.Get(json.Marshal(wish))(t)
	assert.Less(t, len(b), 256<<10)

	p := h.refused(413, wire.CodeTooLarge, "POST", wire.PathStop, `{"reason": "`+strings.Repeat("x", 10<<20)+`"}`)
	assert.Contains(t, p.Message, "8388608 bytes")
	require.Len(t, r.heard(), 1)
}

func TestBadStops(t *testing.T) {
	h, r := newStopping(t, 1)
	for _, c := range []struct{ body, field, message string }{
		{`{"key": 1}`, "key", "it is a number; want a string"},
		{`{"key": "a b"}`, "key", "without spaces"},
		{`{"key": "` + strings.Repeat("k", 101) + `"}`, "key", "101 bytes"},
		{`{"reason": ["x"]}`, "reason", "it is an array; want a string"},
		{`{"error": "x"}`, "error", "it is a string; want an object"},
		{`{"error": {}}`, "error.message", "it is missing"},
		{`{"error": {"message": 3}}`, "error.message", "want a string"},
		{`{"error": {"message": "x", "timestamp": -1}}`, "error.timestamp", "seconds since 1970"},
		{`{"error": {"text": "x"}}`, "text", "the fields are key, reason, error, error.kind, error.message, error.traceback, error.timestamp"},
		{`{"why": "x"}`, "why", "unknown field"},
		{`true`, "", "it is a bool; want an object"},
		{`{"reason": "x"`, "", "the JSON ends too early"},
		{`{"reason": "x"} {}`, "", "unexpected data after"},
	} {
		p := h.refused(400, wire.CodeInvalid, "POST", wire.PathStop, c.body)
		assert.Equal(t, c.field, p.Field, c.body)
		assert.Contains(t, p.Message, c.message, c.body)
	}
	for query, field := range map[string]string{
		"?wait=30": "wait", "?wait=-1s": "wait", "?wait=soon": "wait", "?after=-1": "after", "?after=x": "after", "?until=clear": "until", "?wait=%zz": "",
	} {
		p := h.refused(400, wire.CodeInvalid, "GET", wire.PathStop+query, "")
		assert.Equal(t, field, p.Field, query)
	}
	h.refused(405, wire.CodeMethod, "PUT", wire.PathStop, "")
	h.refused(404, wire.CodeNotFound, "GET", wire.PathStop+"/x", "")
	assert.Empty(t, r.heard())

	assert.True(t, h.stop(0, "POST", "", "").Stop, "no body is a wish, too")
	assert.NotEmpty(t, r.wish(t).Key)
}

// A repeated request counts once, even if it is sent concurrently or to another server.
func TestAWishThatComesAgain(t *testing.T) {
	h, r := newStopping(t, 2)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			assert.Equal(t, 1, h.stop(0, "POST", "", `{"key": "k", "reason": "x"}`).Seq)
		})
	}
	all.Wait()
	require.NoError(t, h.Close())
	h.start()
	assert.Equal(t, wire.Stopping{Seq: 1, Stop: true, By: "worker-0", Reason: "x"}, h.stop(0, "POST", "", `{"key": "k", "reason": "x"}`))
	r.wish(t)
}

// A wait for news has no deadline, on any connection, because a body's time limit applies only to
// requests with a body.
func TestAWaitForNewsHasNoDeadline(t *testing.T) {
	h, _ := newStopping(t, 2)
	h.restartWith(patience{body: 50 * time.Millisecond})
	ask := func(c net.Conn, request, body string) {
		t.Helper()
		_, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: task\r\n%s", request, body)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	}
	// A request with a missing body is answered when its time is over. By then, every earlier
	// request's time is also over.
	patienceIsOver := func() {
		t.Helper()
		for range 2 {
			late := dial(t, h.paths[1])
			ask(late, "PUT /v1/result", "Content-Length: 10\r\n\r\n{")
			r := must.Get(http.ReadResponse(bufio.NewReader(late), nil))(t)
			assert.Equal(t, http.StatusRequestTimeout, r.StatusCode)
		}
	}
	c := dial(t, h.paths[0])
	in := bufio.NewReader(c)
	for i := range 3 {
		ask(c, fmt.Sprintf("GET /v1/stop?wait=1m&after=%d", i), "\r\n")
		patienceIsOver()
		h.SetStopping(h.run, spec.Stopping{Seq: i + 1})
		r := must.Get(http.ReadResponse(in, nil))(t)
		var told wire.Stopping
		require.NoError(t, json.NewDecoder(r.Body).Decode(&told))
		assert.Equal(t, i+1, told.Seq, "answered before there was news")
	}
}

// A waiting request is answered with the stop, even if a later state follows immediately.
func TestAWaitIsAnsweredWithTheStop(t *testing.T) {
	h, _ := newStopping(t, 1)
	h.SetStopping(h.run, spec.Stopping{Seq: 4})
	told := make(chan wire.Stopping)
	for _, query := range []string{"?wait=1m", "?wait=1m&after=4"} {
		go func() { told <- h.stop(0, "GET", query, "") }()
	}
	awaitStopWaiters(t, 2)
	h.SetStopping(h.run, spec.Stopping{Seq: 5, Stop: true})
	h.SetStopping(h.run, spec.Stopping{Seq: 6, Stop: true, Reason: "enough"})
	for range 2 {
		assert.Equal(t, wire.Stopping{Seq: 5, Stop: true}, <-told)
	}
	assert.Equal(t, wire.Stopping{Seq: 6, Stop: true, Reason: "enough"}, h.stop(0, "GET", "?wait=1m&after=5", ""))
}

// awaitStopWaiters waits until n requests wait for a stop.
func awaitStopWaiters(t *testing.T, n int) {
	t.Helper()
	awaitGoroutines(t, "taskapi.getStop(", n)
}

// awaitGoroutines waits until n goroutines are in a function.
func awaitGoroutines(t *testing.T, function string, n int) {
	t.Helper()
	buffer := make([]byte, 64<<20)
	require.Eventually(t, func() bool {
		return strings.Count(string(buffer[:runtime.Stack(buffer, true)]), function) == n
	}, time.Minute, 5*time.Millisecond)
}

func TestTheWaitEnds(t *testing.T) {
	h, _ := newStopping(t, 1)
	assert.Equal(t, wire.Stopping{}, h.stop(0, "GET", "?wait=10ms", ""))
	assert.Equal(t, wire.Stopping{}, h.stop(0, "GET", "?wait=0s&after=0", ""))
	q, problem := parseStopQuery("wait=1000h&after=7")
	assert.Nil(t, problem)
	assert.Equal(t, stopQuery{wait: maxStopWait, after: 7}, q)
}

// News older than the host's state changes nothing, from any sender.
func TestOldNews(t *testing.T) {
	h, _ := newStopping(t, 1)
	h.SetStopping(h.run, spec.Stopping{Seq: 3, Stop: true, By: "ps-0"})
	h.SetStopping(h.run, spec.Stopping{Seq: 2})
	h.SetStopping(h.run, spec.Stopping{Seq: 3, Stop: true, By: "another"})
	assert.Equal(t, "ps-0", h.stop(0, "GET", "", "").By)
	assert.Equal(t, 1, h.stop(0, "POST", "", "").Seq, "the answer is the run's")
	assert.Equal(t, "ps-0", h.stop(0, "GET", "", "").By)
}

// A task gets a stop that was announced before the task existed. Another run's task does not.
func TestStoppingIsKeptUntilRelease(t *testing.T) {
	h, _ := newStopping(t, 1)
	other := runkey.Run{WorkflowID: "other"}
	h.SetStopping(other, spec.Stopping{Seq: 1, Stop: true})
	assert.False(t, h.stop(0, "GET", "", "").Stop)
	path := must.Get(h.Listen(Task{ID: runkey.Task{Run: other, Task: "worker-0"}, View: h.view}))(t)
	assert.True(t, clientAt(t, path).ShouldStop())
	path = must.Get(h.Listen(Task{ID: runkey.Task{Run: other, Generation: 1, Task: "worker-0"}, View: h.view}))(t)
	assert.True(t, clientAt(t, path).ShouldStop(), "it is the run's, and not a generation's")
	h.Release(other)
	h.Release(h.run)
	assert.Empty(t, h.Server.stops)
}

// Once its task is over, a request neither waits forever nor reaches the run.
func TestTheTaskIsOver(t *testing.T) {
	h, r := newStopping(t, 2)
	c := h.task(0)
	conn := dial(t, h.paths[0])
	in := bufio.NewReader(conn)
	ask := func(method, query string) (status int, body string) {
		_, err := io.WriteString(conn, method+" /v1/stop"+query+" HTTP/1.1\r\nHost: task\r\nContent-Length: 0\r\n\r\n")
		require.NoError(t, err)
		a := must.Get(http.ReadResponse(in, nil))(t)
		b := must.Get(io.ReadAll(a.Body))(t)
		return a.StatusCode, string(b)
	}
	status, _ := ask("GET", "")
	require.Equal(t, 200, status)
	told := make(chan error, 1)
	go func() {
		_, err := c.WaitForStop(testContext(t))
		told <- err
	}()
	awaitStopWaiters(t, 1)
	_, err := h.Listen(Task{ID: runkey.Task{Run: h.run, Generation: 1, Task: "worker-0"}, View: h.view})
	require.NoError(t, err)
	var refused *task.APIError
	require.ErrorAs(t, <-told, &refused)
	assert.Equal(t, wire.CodeOver, refused.Code)
	assert.Contains(t, refused.Message, "the run has restarted all tasks")
	for _, request := range [][]string{{"GET", ""}, {"GET", "?wait=1m"}, {"POST", ""}} {
		status, body := ask(request[0], request[1])
		assert.Equal(t, 409, status, body)
		assert.Contains(t, body, wire.CodeOver)
	}
	assert.Empty(t, r.heard())
	assert.False(t, c.ShouldStop())
}

func TestTheRunRefuses(t *testing.T) {
	h, r := newStopping(t, 1)
	r.refuses("run iris has ended")
	p := h.refused(409, wire.CodeStopRefused, "POST", wire.PathStop, "")
	assert.Equal(t, "run iris has ended", p.Message)
	assert.False(t, h.task(0).ShouldStop())
}

func TestWithoutStops(t *testing.T) {
	h := newHost(t, 1)
	for _, method := range []string{"GET", "POST"} {
		h.refused(501, wire.CodeNotThere, method, wire.PathStop, "")
	}
	c := h.task(0)
	assert.False(t, c.ShouldStop())
	var refused *task.APIError
	_, err := c.WaitForStop(testContext(t))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, wire.CodeNotThere, refused.Code)
	require.ErrorAs(t, c.RequestStop(testContext(t), nil), &refused)
}

// If a run does not answer, the request is repeated with the same key for as long as the task
// waits.
func TestTheRunIsAway(t *testing.T) {
	h, r := newStopping(t, 1)
	h.restartWith(patience{run: 20 * time.Millisecond})
	release := r.hold()
	p := h.refused(503, wire.CodeUnavailable, "POST", wire.PathStop, "")
	assert.Contains(t, p.Message, "the run did not answer within 20ms; ask again with the same key")
	<-r.asked

	told := make(chan error, 1)
	c := h.task(0)
	go func() { told <- c.RequestStop(testContext(t), nil) }()
	for range 3 {
		<-r.asked
	}
	release()
	require.NoError(t, <-told)
	assert.True(t, c.ShouldStop())
	r.wish(t)

	ctx, cancel := context.WithCancel(t.Context())
	r.hold()
	go func() { told <- c.RequestStop(ctx, nil) }()
	<-r.asked
	cancel()
	require.ErrorIs(t, <-told, context.Canceled)
}

// A request stops waiting for the run when its caller disconnects or its task ends.
func TestNobodyWaitsForTheRun(t *testing.T) {
	h, r := newStopping(t, 2)
	r.hold()
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 2)
	go func(c *task.Task) { told <- c.RequestStop(ctx, nil) }(h.task(0))
	first := <-r.asked
	cancel()
	require.ErrorIs(t, <-told, context.Canceled)
	<-first.Done()

	go func(c *task.Task) { told <- c.RequestStop(testContext(t), nil) }(h.task(1))
	second := <-r.asked
	h.Release(h.run)
	<-second.Done()
	var refused *task.APIError
	require.ErrorAs(t, <-told, &refused)
	assert.Equal(t, wire.CodeOver, refused.Code)
}

// Half a request does not count.
func TestHalfAWish(t *testing.T) {
	h, r := newStopping(t, 1)
	c := dial(t, h.paths[0])
	_, err := io.WriteString(c, "POST /v1/stop HTTP/1.1\r\nHost: task\r\nContent-Length: 30\r\n\r\n{\"reason\": \"x\"")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, h.Close()) // cancels all requests still being served
	h.start()
	assert.Empty(t, r.heard())
}

// The server is killed while tasks wait, and the stop arrives while no server is up.
func TestAStopWhileTheServerIsAway(t *testing.T) {
	h, _ := newStopping(t, 2)
	a, b := h.task(0), h.task(1)
	assert.False(t, a.ShouldStop())
	told := make(chan error, 2)
	for _, c := range []*task.Task{a, b} {
		go func() {
			_, err := c.WaitForStop(testContext(t))
			told <- err
		}()
	}
	awaitStopWaiters(t, 2)
	require.NoError(t, h.Close())
	assert.False(t, a.ShouldStop(), "nobody has said so")
	h.startKnowing(spec.Stopping{Seq: 1, Stop: true, By: "ps-0"})
	require.NoError(t, <-told)
	require.NoError(t, <-told)

	// A server that does not know of the stop yet changes nothing for tasks that do.
	require.NoError(t, h.Close())
	h.startKnowing(spec.Stopping{})
	awaitStopWaiters(t, 2)
	assert.True(t, a.ShouldStop())
	h.SetStopping(h.run, spec.Stopping{Seq: 2})
	require.Eventually(t, func() bool { return !a.ShouldStop() && !b.ShouldStop() }, time.Minute, time.Millisecond)
}

// The server is killed during a request: the request is resent, and counts once.
func TestAWishWhileTheServerIsKilled(t *testing.T) {
	h, r := newStopping(t, 1)
	release := r.hold()
	c := h.task(0)
	told := make(chan error, 1)
	go func() { told <- c.RequestStop(testContext(t), errors.New("x")) }()
	<-r.asked
	require.NoError(t, h.Close())
	release()
	h.startKnowing(spec.Stopping{})
	require.NoError(t, <-told)
	assert.Equal(t, "x", r.wish(t).Error.Message)
	assert.True(t, c.ShouldStop())
}

// Ten thousand waiters in one process are one request, and nothing is left of them.
func TestManyWaitForAStop(t *testing.T) {
	h, _ := newStopping(t, 2)
	const all = 10000
	c := h.task(0)
	assert.False(t, c.ShouldStop())
	awaitStopWaiters(t, 1)
	before := runtime.NumGoroutine()
	var waiting sync.WaitGroup
	for range all {
		waiting.Go(func() {
			_, err := c.WaitForStop(t.Context())
			assert.NoError(t, err)
		})
	}
	l := h.tasks[h.ids[0]].listener
	require.Eventually(t, func() bool { return runtime.NumGoroutine() >= before+all }, time.Minute, time.Millisecond)
	assert.Len(t, l.slots, 2, "one is open, and one may come")

	h.SetStopping(h.run, spec.Stopping{Seq: 1, Stop: true})
	waiting.Wait()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+5 }, time.Minute, 5*time.Millisecond)
}

// BenchmarkShouldStop measures a training step's cost of checking for a stop.
func BenchmarkShouldStop(b *testing.B) {
	h, _ := newStopping(b, 1)
	c := h.task(0)
	b.Run("asked before", func(b *testing.B) {
		for b.Loop() {
			c.ShouldStop()
		}
	})
	b.Run("asking the host", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Stopping(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A notice reaches a polling program, with the time left, and so does its end.
func TestNotice(t *testing.T) {
	h, _ := newStopping(t, 1)
	c := h.task(0)
	_, noticed := c.Preempted()
	assert.False(t, noticed)
	now := time.Now()
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Notice: &spec.StopNotice{Given: now, Deadline: now.Add(time.Minute)}})
	require.Eventually(t, func() bool { _, noticed = c.Preempted(); return noticed }, 10*time.Second, time.Millisecond)
	first, _ := c.Preempted()
	assert.InDelta(t, time.Minute, first, float64(10*time.Second))
	later, _ := c.Preempted()
	assert.Less(t, later, first)
	assert.False(t, c.ShouldStop())
	h.SetStopping(h.run, spec.Stopping{Seq: 2})
	require.Eventually(t, func() bool { _, noticed = c.Preempted(); return !noticed }, 10*time.Second, time.Millisecond)
}
