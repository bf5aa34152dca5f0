package taskapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// host is a server with a run's tasks worker-0 to worker-N. Another host runs ps-0.
type host struct {
	*Server
	t     testing.TB
	state string
	logs  string
	view  *View
	run   runkey.Run
	ids   []runkey.Task
	paths []string
	stops Stops
	// schedules is its servers' Queue.
	schedules func(context.Context, runkey.Task) (closurequeue.Queue, error)
	// patience is its servers' patience.
	patience patience
}

func newHost(t testing.TB, workers int) *host {
	t.Helper()
	return newHostWith(t, workers, nil)
}

func newHostWith(t testing.TB, workers int, stops Stops) *host {
	t.Helper()
	h := &host{t: t, stops: stops, patience: usualPatience, state: t.TempDir(), logs: t.TempDir(), run: runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1-2-3"}, view: &View{Here: map[string]bool{}}}
	for i := range workers {
		name := "worker-" + strconv.Itoa(i)
		h.ids = append(h.ids, runkey.Task{Run: h.run, Task: name})
		h.view.Members = append(h.view.Members, Member{
			Task: name, Type: "worker", Index: i, Rank: i, LocalRank: i, Host: "host-a", Address: "127.0.0.1:" + strconv.Itoa(20000+i),
		})
		h.view.Tasks = append(h.view.Tasks, name)
		h.view.Here[name] = true
	}
	h.view.Members = append(h.view.Members, Member{Task: "ps-0", Type: "ps", Rank: workers, Host: "host-b", Address: "host-b:1"})
	h.start()
	return h
}

// start starts the first or next server.
func (h *host) start() {
	h.t.Helper()
	h.startKnowing(spec.Stopping{})
}

// restartWith replaces the server with one with less patience.
func (h *host) restartWith(p patience) {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	h.patience = patience{cmp.Or(p.head, h.patience.head), cmp.Or(p.body, h.patience.body), cmp.Or(p.run, h.patience.run)}
	h.start()
}

// startKnowing starts a server that knows the run's stopping state before it serves.
func (h *host) startKnowing(now spec.Stopping) {
	h.t.Helper()
	s := must.Get(newServer(Config{StateDir: h.state, Stops: h.stops, Queue: h.schedules, Log: zap.NewNop()}, h.patience))(h.t)
	h.t.Cleanup(func() { _ = s.Close() })
	h.Server, h.paths = s, nil
	h.SetStopping(h.run, now)
	for i := range h.ids {
		h.paths = append(h.paths, h.listen(i, 0))
	}
}

func (h *host) listen(i, restart int) string {
	h.t.Helper()
	dir := filepath.Join(h.logs, strconv.Itoa(restart), strconv.Itoa(i))
	require.NoError(h.t, os.MkdirAll(dir, 0o755))
	path := must.Get(h.Listen(Task{ID: h.ids[i], RestartCount: restart, Host: "host-a", LogDir: dir, View: h.view}))(h.t)
	return path
}

// task returns a task's Go client.
func (h *host) task(i int) *task.Task { return clientAt(h.t, h.paths[i]) }

// environment is locked while the environment is changed, because tests create clients
// concurrently.
var environment sync.Mutex

func clientAt(t testing.TB, path string) *task.Task {
	t.Helper()
	environment.Lock()
	defer environment.Unlock()
	before := os.Getenv(SocketVar)
	require.NoError(t, os.Setenv(SocketVar, path))
	c, err := task.Current()
	require.NoError(t, os.Setenv(SocketVar, before))
	require.NoError(t, err)
	return c
}

// do sends a request like any HTTP client.
func (h *host) do(i int, method, path, body string) (int, string, http.Header) {
	h.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", h.paths[i])
		}}}
	r := must.Get(http.NewRequest(method, "http://task"+path, strings.NewReader(body)))(h.t)
	answer := must.Get(client.Do(r))(h.t)
	defer answer.Body.Close()
	b := must.Get(io.ReadAll(answer.Body))(h.t)
	return answer.StatusCode, string(b), answer.Header
}

// refused checks that a request is refused, and returns the problem.
func (h *host) refused(status int, code, method, path, body string) wire.Problem {
	h.t.Helper()
	got, text, header := h.do(0, method, path, body)
	assert.Equal(h.t, status, got, text)
	assert.Equal(h.t, "application/json", header.Get("Content-Type"))
	f := must.JSON[wire.Failure](h.t, text)
	assert.Equal(h.t, code, f.Error.Code, text)
	assert.NotEmpty(h.t, f.Error.Message)
	return f.Error
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestWhoATaskIs(t *testing.T) {
	h := newHost(t, 2)
	info := must.Get(h.task(1).Info(testContext(t)))(t)
	assert.Equal(t, task.Info{
		Run: "iris", Execution: "1-2-3", Task: "worker-1", Type: "worker", Index: 1, Rank: 1, LocalRank: 1,
		WorldSize: 3, LocalWorldSize: 2, Host: "host-a", Address: "127.0.0.1:20001",
	}, info)
	members := must.Get(h.task(0).Cluster(testContext(t)))(t)
	assert.Equal(t, h.view.Members, members)
	h.listen(1, 3)
	info = must.Get(h.task(1).Info(testContext(t)))(t)
	assert.Equal(t, 3, info.RestartCount)
}

func TestResult(t *testing.T) {
	h := newHost(t, 1)
	ctx := testContext(t)
	file := filepath.Join(h.logs, "0", "0", tasklog.ResultFile)
	read := func() string {
		b := must.Get(tasklog.ReadResult(file, wire.MaxResult))(t)
		return string(b)
	}
	require.NoError(t, h.task(0).Result(ctx, map[string]any{"loss": 0.5}))
	assert.Equal(t, `{"loss":0.5}`, read())
	require.NoError(t, h.task(0).Result(ctx, nil))
	assert.Equal(t, "null", read(), "the later one counts")

	largest := strings.Repeat("x", wire.MaxResult-2)
	require.NoError(t, h.task(0).Result(ctx, largest))
	assert.Len(t, read(), wire.MaxResult)
	for _, size := range []int{wire.MaxResult - 1, 5 << 20} {
		var refused *task.APIError
		require.ErrorAs(t, h.task(0).Result(ctx, strings.Repeat("x", size)), &refused)
		assert.Equal(t, wire.CodeTooLarge, refused.Code)
		assert.Contains(t, refused.Message, "262144 bytes")
		assert.Contains(t, refused.Message, "CLUSTERRUN_RESULT_FILE")
	}
	assert.Len(t, read(), wire.MaxResult, "what was there stays")

	for body, want := range map[string]string{
		"": "the body is empty", "  ": "the body is empty", "nonsense": "not one JSON value", "1 2": "not one JSON value",
		"NaN": "not one JSON value", "\"\xff\"": "the result is not UTF-8",
		strings.Repeat("[", 9999) + strings.Repeat("]", 9999): "the result has lists and objects nested to a depth of 9999; the limit is 500",
	} {
		p := h.refused(400, wire.CodeInvalid, "PUT", wire.PathResult, body)
		assert.Contains(t, p.Message, want)
	}
	entries := must.Get(os.ReadDir(filepath.Dir(file)))(t)
	assert.Len(t, entries, 1, "nothing half-written is left")

	h.listen(0, 1)
	require.NoError(t, h.task(0).Result(ctx, 2))
	file = filepath.Join(h.logs, "1", "0", tasklog.ResultFile)
	assert.Equal(t, "2", read(), "the next process has its own")
}

func TestError(t *testing.T) {
	h := newHost(t, 1)
	file := filepath.Join(h.logs, "0", "0", tasklog.ErrorFile)
	require.NoError(t, h.task(0).Report(testContext(t), task.Report{Kind: "ValueError", Message: "x", Traceback: "at line 1", Timestamp: 1e9}))
	b := must.Get(os.ReadFile(file))(t)
	assert.JSONEq(t, `{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "at line 1", "timestamp": "1000000000"}}}`, string(b), "as torch writes it")

	require.NoError(t, h.task(0).Error(testContext(t), fmt.Errorf("no space: %w", os.ErrExist)))
	r := must.Get(tasklog.ReadErrorFile(file))(t)
	assert.Equal(t, "no space: file already exists", r.Message)
	assert.Contains(t, r.Callstack, "TestError")
	assert.WithinDuration(t, time.Now(), r.When(), time.Minute)

	// Bytes that take six characters each in JSON do not make the report too long to read.
	require.NoError(t, h.task(0).Report(testContext(t), task.Report{Message: strings.Repeat("\x01", 1<<20), Traceback: strings.Repeat("<", 200<<10) + "end"}))
	r = must.Get(tasklog.ReadErrorFile(file))(t)
	assert.True(t, strings.HasSuffix(r.Callstack, "<<end"))

	h.refused(400, wire.CodeInvalid, "PUT", wire.PathError, "{}")
	h.refused(400, wire.CodeInvalid, "PUT", wire.PathError, `{"message": "x", "timestamp": -1}`)
	p := h.refused(413, wire.CodeTooLarge, "PUT", wire.PathError, `{"message": "`+strings.Repeat("x", maxErrorBody)+`"}`)
	assert.Contains(t, p.Message, "8388608 bytes")
}

func TestWithoutFiles(t *testing.T) {
	h := newHost(t, 1)
	_, err := h.Listen(Task{ID: h.ids[0], View: h.view})
	require.NoError(t, err)
	for path, body := range map[string]string{wire.PathResult: "1", wire.PathError: `{"message": "x"}`} {
		p := h.refused(409, wire.CodeNoFiles, "PUT", path, body)
		assert.Contains(t, p.Message, "the run keeps no files")
	}
	require.NoError(t, h.task(0).Progress(testContext(t), 1, 2, ""))
}

func TestProgress(t *testing.T) {
	h := newHost(t, 1)
	assert.Nil(t, h.Progress(h.ids[0]))
	assert.Nil(t, h.Progress(runkey.Task{Task: "unknown-0"}))
	ctx := testContext(t)
	for i := range 100001 {
		require.NoError(t, h.task(0).Progress(ctx, float64(i), 100000, "loss 0.3"))
	}
	assert.Equal(t, &Progress{Current: 100000, Total: 100000, Message: "loss 0.3"}, h.Progress(h.ids[0]), "the last one gets there")
	h.listen(0, 1)
	assert.Nil(t, h.Progress(h.ids[0]), "the next process has not said anything")
}

// A hanging file system delays starting tasks, but neither heartbeats nor ending tasks.
func TestFilesThatHang(t *testing.T) {
	h := newHost(t, 1)
	next := Task{ID: runkey.Task{Run: runkey.Run{Namespace: "default", WorkflowID: "mnist"}, Task: "worker-0"}, View: h.view}
	pipe := filepath.Join(must.Get(h.makeRunDir(&next))(t), short("rounds", fileOf(runkey.Task{})))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600)) // blocks whoever opens it
	begun := make(chan error, 1)
	go func() {
		_, err := h.Listen(next)
		begun <- err
	}()
	require.Eventually(t, func() bool {
		if h.files.TryLock() {
			h.files.Unlock()
			return false
		}
		return true
	}, time.Minute, time.Millisecond)
	answered := make(chan *Progress, 1)
	go func() {
		h.SetStopping(h.run, spec.Stopping{})
		h.StepTime(h.ids[0])
		h.Ended(h.ids[0], false, "exited")
		answered <- h.Progress(h.ids[0])
	}()
	select {
	case <-answered:
	case <-testContext(t).Done():
		t.Error("they wait")
	}
	require.NoError(t, os.Rename(pipe, pipe+".moved"))
	other := must.Get(os.OpenFile(pipe+".moved", os.O_RDWR, 0))(t)
	require.NoError(t, other.Close())
	assert.NoError(t, <-begun)
}

// A task that sends its progress in every iteration, without one of our clients, does not slow
// other tasks: they meet during that time.
func TestAFloodOfProgress(t *testing.T) {
	h := newHost(t, 3)
	c := dial(t, h.paths[0])
	in := bufio.NewReader(c)
	send := func(current int) error {
		body := fmt.Sprintf(`{"current": %d}`, current)
		if _, err := fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: task\r\nContent-Length: %d\r\n\r\n%s", wire.PathProgress, len(body), body); err != nil {
			return err
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body)
		return err
	}
	met, sent := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 1; ; i++ {
			select {
			case <-met:
				sent <- send(1e9)
				return
			default:
				if err := send(i); err != nil {
					sent <- err
					return
				}
			}
		}
	}()
	one, two := h.task(1), h.task(2)
	meet := func(c *task.Task) error {
		_, err := c.Barrier(testContext(t), "step", task.Local(), task.Participants("worker-1", "worker-2"))
		return err
	}
	for h.Progress(h.ids[0]) == nil || h.Progress(h.ids[0]).Current < 5000 {
		first := make(chan error, 1)
		go func() { first <- meet(one) }()
		require.NoError(t, meet(two))
		require.NoError(t, <-first)
	}
	close(met)
	require.NoError(t, <-sent)
	assert.Equal(t, &Progress{Current: 1e9}, h.Progress(h.ids[0]))
	l := h.tasks[h.ids[0]].listener
	assert.Len(t, l.slots, 2, "one is open, and one may come")
}

func TestBadRequests(t *testing.T) {
	h := newHost(t, 2)
	h.refused(404, wire.CodeNotFound, "GET", "/", "")
	h.refused(404, wire.CodeNotFound, "GET", "/v2/task", "")
	h.refused(404, wire.CodeNotFound, "POST", "/v1/barriers/a/b", "")
	h.refused(404, wire.CodeNotFound, "GET", "/v1/task/../task", "")
	_, _, header := h.do(0, "DELETE", wire.PathTask, "")
	assert.Equal(t, "GET", header.Get("Allow"))
	h.refused(405, wire.CodeMethod, "DELETE", wire.PathTask, "")
	h.refused(405, wire.CodeMethod, "GET", wire.PathBarriers+"x", "")

	for _, c := range []struct{ body, field, message string }{
		{`{"current": "1"}`, "current", "field current: it is a string; want a number"},
		{`{"current": 1, "message": 3}`, "message", "want a string"},
		{`{"speed": 1}`, "speed", "unknown field; the fields are current, total, message"},
		{`{"current": -1}`, "current", "negative"},
		{`{"current": 1, "total": -1}`, "total", "negative"},
		{`{"total": 1}`, "current", "it is missing"},
		{`null`, "current", "it is missing"},
		{"", "current", "it is missing"},
		{`[1]`, "", "it is an array; want an object"},
		{`{"current": 1} x`, "", "unexpected data after"},
		{`{"current": 1`, "", "the JSON ends too early"},
		{`{"current": 1e999}`, "current", "field current: the number 1e999 is too large"},
		{`{"current": NaN}`, "", "not JSON"},
		{`{"total": -Infinity}`, "", "not JSON"},
	} {
		p := h.refused(400, wire.CodeInvalid, "PUT", wire.PathProgress, c.body)
		assert.Equal(t, c.field, p.Field, c.body)
		assert.Contains(t, p.Message, c.message, c.body)
	}
	assert.Nil(t, h.Progress(h.ids[0]))
	h.refused(413, wire.CodeTooLarge, "PUT", wire.PathProgress, `{"message": "`+strings.Repeat("x", 1<<20)+`"}`)

	for _, c := range []struct{ path, body, field string }{
		{"", "", "name"},
		{strings.Repeat("x", 201), "", "name"},
		{"a%00b", "", "name"},
		{"%ff", "", "name"},
		{"x", `{"timeout": "soon"}`, "timeout"},
		{"x", `{"timeout": "-1s"}`, "timeout"},
		{"x", `{"timeout": 30}`, "timeout"},
		{"x", `{"key": "` + strings.Repeat("k", 101) + `"}`, "key"},
		{"x", `{"key": "a b"}`, "key"},
		{"x", `{"participants": "worker"}`, "participants"},
		{"x", `{"participants": ["worker", "evaluator"]}`, "participants[1]"},
	} {
		p := h.refused(400, wire.CodeInvalid, "POST", wire.PathBarriers+c.path, c.body)
		assert.Equal(t, c.field, p.Field, "%s: %s", c, p.Message)
	}
	h.refused(400, wire.CodeInvalid, "DELETE", wire.PathBarriers+"x", "")
}

// The client shortens a report that is longer than the host keeps, so that it is not refused.
func TestLongReports(t *testing.T) {
	h := newHost(t, 1)
	file := filepath.Join(h.logs, "0", "0", tasklog.ErrorFile)
	require.NoError(t, h.task(0).Report(testContext(t), task.Report{
		Kind: "ValueError", Message: "start" + strings.Repeat("<", 10<<20), Traceback: strings.Repeat("\xff\x01", 5<<20) + "end",
	}))
	r := must.Get(tasklog.ReadErrorFile(file))(t)
	assert.True(t, strings.HasPrefix(r.Message, "ValueError: start<<<"), r.Message[:40])
	assert.True(t, strings.HasSuffix(r.Callstack, "end"))
	require.NoError(t, h.task(0).Progress(testContext(t), 1, 2, strings.Repeat("x", 10<<20)))

	// JSON in its most compact form may use the whole limit.
	require.NoError(t, h.task(0).Result(testContext(t), strings.Repeat("<", wire.MaxResult-2)))
}

// The error for a field of the wrong type names the field, for every field of every request.
func TestWrongTypes(t *testing.T) {
	h, _ := newStopping(t, 1)
	h.serves(func(context.Context, string, wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
		return wire.ClosuresAnswer{}, nil
	})
	h.Queue = func(context.Context, runkey.Task) (closurequeue.Queue, error) {
		return closurequeue.NewClient(nil, spec.RunRef{}), nil
	}
	values := map[string]string{"string": `"x"`, "number": `7`, "bool": `true`, "array": `[7]`, "object": `{"a": 1}`}
	fits := map[reflect.Kind]string{reflect.String: "string", reflect.Float64: "number", reflect.Bool: "bool"}
	tried := 0
	for route, types := range described {
		if types.request == nil {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		path = strings.ReplaceAll(path, "{name}", "x")
		typ := reflect.TypeOf(types.request)
		for kind, value := range values {
			if kind != "object" {
				p := h.refused(400, wire.CodeInvalid, method, path, value)
				assert.Contains(t, p.Message, "; want an object", route)
			}
			for _, f := range reflect.VisibleFields(typ) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				field := f.Type.Kind()
				if f.Anonymous {
					continue // its fields are visited separately
				}
				if field == reflect.Slice || field == reflect.Int || field == reflect.Uint64 {
					continue // their elements and limits have separate tests
				}
				if kind == fits[field] || kind == "object" && (field == reflect.Pointer || field == reflect.Struct || field == reflect.Map) {
					continue
				}
				p := h.refused(400, wire.CodeInvalid, method, path, fmt.Sprintf(`{%q: %s}`, name, value))
				assert.Equal(t, name, p.Field, "%s: %s", route, p.Message)
				assert.Contains(t, p.Message, "field "+name+": it is a", route)
				tried++
			}
		}
	}
	assert.Greater(t, tried, 40)
	h.mu.Lock()
	defer h.mu.Unlock()
	assert.Nil(t, h.tasks[h.ids[0]].progress)
}

// ask sends a result to a task's socket as a user, and returns the outcome.
func ask(t *testing.T, u *hostuser.User, path string) string {
	t.Helper()
	said := make(chan string)
	go func() {
		// To the kernel, this thread is the user's process. It exits with the goroutine.
		runtime.LockOSThread()
		if u != nil {
			for _, call := range [][4]uintptr{
				{syscall.SYS_SETGROUPS}, {syscall.SYS_SETRESGID, uintptr(u.GID), uintptr(u.GID), uintptr(u.GID)},
				{syscall.SYS_SETRESUID, uintptr(u.UID), uintptr(u.UID), uintptr(u.UID)},
			} {
				if _, _, errno := syscall.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
					said <- errno.Error()
					return
				}
			}
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			said <- errors.Unwrap(errors.Unwrap(err)).Error()
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "PUT /v1/result HTTP/1.0\r\nHost: task\r\nContent-Length: 2\r\n\r\n42")
		answer, _ := io.ReadAll(conn)
		line, _, _ := strings.Cut(string(answer), "\r\n")
		said <- line
	}()
	return <-said
}

// A task that runs as another user reaches only its own socket.
func TestTheSocketIsTheUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir := must.Get(os.MkdirTemp("/tmp", "t"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	s := must.Get(NewServer(Config{StateDir: dir}))(t)
	defer s.Close()
	alice, bob := &hostuser.User{Name: "alice", UID: 54321, GID: 54321}, &hostuser.User{Name: "bob", UID: 54322, GID: 54322}
	listen := func(run string, u *hostuser.User) (path, logs string) {
		logs = filepath.Join(dir, "logs-"+run)
		require.NoError(t, os.Mkdir(logs, 0o700))
		if u != nil {
			require.NoError(t, os.Lchown(logs, int(u.UID), int(u.GID)))
		}
		path, err := s.Listen(Task{
			ID: runkey.Task{Run: runkey.Run{WorkflowID: run}, Task: "worker-0"}, User: u, LogDir: logs, View: &View{Members: []Member{{Task: "worker-0"}}},
		})
		require.NoError(t, err)
		return path, logs
	}
	hers, logs := listen("hers", alice)
	his, _ := listen("his", bob)
	ours, _ := listen("ours", nil)

	assert.Equal(t, "HTTP/1.0 200 OK", ask(t, alice, hers))
	info := must.Get(os.Stat(filepath.Join(logs, tasklog.ResultFile)))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.Equal(t, alice.UID, info.Sys().(*syscall.Stat_t).Uid, "the file is hers")
	for _, path := range []string{his, ours} {
		assert.Equal(t, "permission denied", ask(t, alice, path))
	}
	assert.Equal(t, "HTTP/1.0 200 OK", ask(t, nil, his), "root is let in")

	// A user with access to another's socket is not served.
	require.NoError(t, os.Chmod(his, 0o777))
	assert.Empty(t, ask(t, alice, his))
	assert.Equal(t, "HTTP/1.0 200 OK", ask(t, bob, his))

	// The user can neither change the directory nor list it.
	cmd := exec.Command("sh", "-c", `rm -f "$0"; ls "$(dirname "$0")"; echo x >"$0.new"; true`, hers)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: alice.Credential()}
	out := must.Get(cmd.CombinedOutput())(t)
	assert.Equal(t, 3, strings.Count(string(out), "ermission denied"), string(out))

	// If a link has replaced the log directory, the host worker does not write elsewhere.
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.Mkdir(secret, 0o700))
	require.NoError(t, os.RemoveAll(logs))
	require.NoError(t, os.Symlink(secret, logs))
	assert.Equal(t, "HTTP/1.0 500 Internal Server Error", ask(t, alice, hers))
	left := must.Get(os.ReadDir(secret))(t)
	assert.Empty(t, left)
}

// A large run's participants are given by type, by name, or both.
func TestParticipantsOfALargeRun(t *testing.T) {
	v := &View{}
	var all []string
	for i := range 1000 {
		task := fmt.Sprint("worker-", i)
		v.Members = append(v.Members, Member{Task: task, Type: "worker", Index: i, Rank: i})
		v.Tasks = append(v.Tasks, task)
		all = append(all, task)
	}
	v.Members = append(v.Members, Member{Task: "worker-1000", Type: "worker", Index: 1000, Rank: 1000}) // added later
	for name, names := range map[string][]string{"none": nil, "the type": {"worker"}, "all": all, "twice": append([]string{"worker", "worker-7"}, all...)} {
		got, problem := v.participants(names)
		require.Nil(t, problem, name)
		assert.Equal(t, all, got, name)
	}
	got, problem := v.participants([]string{"worker-1000", "worker-3"})
	require.Nil(t, problem)
	assert.Equal(t, []string{"worker-3", "worker-1000"}, got, "in rank order; what was added has to be named")
	_, problem = v.participants([]string{"worker", "ps"})
	require.NotNil(t, problem)
	assert.Equal(t, "participants[1]", problem.Field)
	assert.Contains(t, problem.Message, `no task and no type "ps"; it has worker-0, `)
	assert.Contains(t, problem.Message, "worker-19 and 981 more")
}

// waits are barriers that release no task until their arrivals end. They report who arrived and
// why each arrival ended.
type waits struct {
	arrived chan barriers.Arrival
	left    chan error
}

func waitElsewhere(h *host) waits {
	w := waits{make(chan barriers.Arrival, 1), make(chan error, 1)}
	h.Barriers = elsewhere(func(ctx context.Context, a barriers.Arrival) (barriers.Release, error) {
		w.arrived <- a
		<-ctx.Done()
		w.left <- context.Cause(ctx)
		return barriers.Release{}, ctx.Err()
	})
	return w
}

// A barrier that stops while a task waits does not answer: the client arrives again.
func TestComeAgain(t *testing.T) {
	h := newHost(t, 1)
	keys := make(chan string, 2)
	h.Barriers = elsewhere(func(_ context.Context, a barriers.Arrival) (barriers.Release, error) {
		keys <- a.Key
		if len(keys) == 1 {
			return barriers.Release{}, barriers.ErrShutdown
		}
		return barriers.Release{Round: 2}, nil
	})
	r := must.Get(h.task(0).Barrier(testContext(t), "x"))(t)
	assert.Equal(t, task.Release{Round: 3, Parties: 1}, r)
	assert.Equal(t, <-keys, <-keys, "it is the same arrival")
}

// A mismatch of participants has the same code as at a local barrier.
func TestRefusedElsewhere(t *testing.T) {
	h := newHost(t, 1)
	for _, code := range []string{wire.CodeBarrierMismatch, wire.CodeAlreadyWaiting} {
		h.Barriers = elsewhere(func(context.Context, barriers.Arrival) (barriers.Release, error) {
			return barriers.Release{}, &barriers.Error{Code: code, Message: "not so"}
		})
		var refused *task.APIError
		_, err := h.task(0).Barrier(testContext(t), "x")
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, code, refused.Code)
	}
	h.Barriers = elsewhere(func(context.Context, barriers.Arrival) (barriers.Release, error) {
		return barriers.Release{}, errors.New("on fire")
	})
	p := h.refused(500, wire.CodeInternal, "POST", wire.PathBarriers+"x", "")
	assert.Equal(t, `barrier "x": on fire`, p.Message)
}

// An arrival at a barrier across hosts can also be withdrawn by its key.
func TestWithdrawnElsewhere(t *testing.T) {
	h := newHost(t, 1)
	w := waitElsewhere(h)
	const path = wire.PathBarriers + "x"
	told := make(chan string, 1)
	go func() {
		_, text, _ := h.do(0, "POST", path, `{"key":"k"}`)
		told <- text
	}()
	<-w.arrived
	for _, key := range []string{"another", "k"} {
		_, text, _ := h.do(0, "DELETE", path+"?key="+key, "")
		assert.JSONEq(t, `{"withdrawn": true}`, text)
	}
	require.ErrorContains(t, <-w.left, `the arrival at barrier "x" was withdrawn`)
	assert.Contains(t, <-told, wire.CodeBarrierWithdrawn)

	// Too late: the arrival was answered, whether or not the answer was read.
	h.Barriers = elsewhere(func(_ context.Context, a barriers.Arrival) (barriers.Release, error) {
		if a.Key == "broken" {
			return barriers.Release{}, &barriers.Error{Code: wire.CodeBarrierBroken, Message: "worker-1 has ended"}
		}
		return barriers.Release{Round: 1}, nil
	})
	_, _, _ = h.do(0, "POST", path, `{"key":"k"}`)
	_, text, _ := h.do(0, "DELETE", path+"?key=k", "")
	assert.JSONEq(t, `{"withdrawn": false, "released": {"round": 2, "index": 0, "parties": 1}}`, text)
	_, _, _ = h.do(0, "POST", path, `{"key":"broken"}`)
	p := h.refused(409, wire.CodeBarrierBroken, "DELETE", path+"?key=broken", "")
	assert.Equal(t, "worker-1 has ended", p.Message)

	h.Ended(h.ids[0], false, "exited with exit code 1")
	_, text, _ = h.do(0, "DELETE", path+"?key=k", "")
	assert.JSONEq(t, `{"withdrawn": true}`, text, "the keys were those of the process that ended")
}

// A process's exit stops its waits even if another process holds its connection open. So does the
// end of its generation.
func TestVisitsEndWithTheProcess(t *testing.T) {
	h := newHost(t, 1)
	w := waitElsewhere(h)
	first := h.arrive(testContext(t), 0, "x")
	<-w.arrived
	h.Ended(h.ids[0], false, "exited with exit code 1")
	require.ErrorContains(t, <-w.left, "the process of worker-0 that arrived has exited")
	assert.Contains(t, broken(t, <-first).Message, "the process of worker-0 that arrived has exited")

	second := h.arrive(testContext(t), 0, "x")
	<-w.arrived
	h.Server.Release(h.run)
	require.ErrorContains(t, <-w.left, "the run has been released on this host")
	assert.Contains(t, broken(t, <-second).Message, "the run has been released on this host")
}
