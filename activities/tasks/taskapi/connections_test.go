package taskapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/privatedir"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
)

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("unix", path))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// exchange sends a request on a connection, and returns its status.
func exchange(c net.Conn, in *bufio.Reader) (int, error) {
	if _, err := io.WriteString(c, "GET /v1/task HTTP/1.1\r\nHost: task\r\n\r\n"); err != nil {
		return 0, err
	}
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, err
}

// One task opens ten thousand connections. A limited number is served at a time, and other tasks
// do not notice.
func TestManyConnections(t *testing.T) {
	h := newHost(t, 2)
	l := h.tasks[h.ids[0]].listener
	const all = 10000
	served := make(chan error, all)
	limit := make(chan struct{}, 4*maxConns) // this test's descriptors
	for range all {
		limit <- struct{}{}
		go func() {
			defer func() { <-limit }()
			c, err := net.Dial("unix", h.paths[0])
			for err != nil && strings.Contains(err.Error(), "temporarily unavailable") {
				time.Sleep(time.Millisecond) // the kernel's queue is full
				c, err = net.Dial("unix", h.paths[0])
			}
			if err == nil {
				defer c.Close()
				_, err = exchange(c, bufio.NewReader(c))
			}
			served <- err
		}()
	}
	_, err := h.task(1).Info(testContext(t))
	require.NoError(t, err, "the other task")
	for range all {
		require.NoError(t, <-served)
	}
	assert.LessOrEqual(t, len(l.slots), maxConns)
}

// Connections kept after a request make way for new ones.
func TestIdleConnectionsAreClosed(t *testing.T) {
	h := newHost(t, 1)
	h.restartWith(patience{head: 200 * time.Millisecond, body: time.Minute})
	for range maxConns {
		c := dial(t, h.paths[0])
		_, err := exchange(c, bufio.NewReader(c))
		require.NoError(t, err)
	}
	_, err := h.task(0).Info(testContext(t))
	require.NoError(t, err)
}

func TestStrangeBytes(t *testing.T) {
	h := newHost(t, 1)
	for name, text := range map[string]string{
		"no HTTP":         "hello\r\n\r\n",
		"a giant name":    "POST /v1/barriers/" + strings.Repeat("x", 10<<20) + " HTTP/1.1\r\nHost: task\r\n\r\n",
		"a giant header":  "GET /v1/task HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"a negative size": "PUT /v1/result HTTP/1.1\r\nHost: task\r\nContent-Length: -1\r\n\r\n",
		"two sizes":       "PUT /v1/result HTTP/1.1\r\nHost: task\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
	} {
		c := dial(t, h.paths[0])
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, _ = io.WriteString(c, text) // it may hang up before reading everything
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, name)
		assert.Contains(t, []int{400, 431}, r.StatusCode, name)
		assert.Contains(t, r.Header.Get("Content-Type"), "text/plain", "as openapi.yaml says")
		assert.True(t, r.Close)
	}
	_, err := h.task(0).Info(testContext(t))
	require.NoError(t, err)
}

// The server does not wait forever for half a request, and keeps serving other requests.
func TestHalfARequest(t *testing.T) {
	h := newHost(t, 2)
	h.restartWith(patience{head: 50 * time.Millisecond, body: 200 * time.Millisecond})
	for _, text := range []string{"", "PUT /v1/res", "PUT /v1/result HTTP/1.1\r\nHost: t"} {
		c := dial(t, h.paths[0])
		_, err := io.WriteString(c, text)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.ReadAll(c)
		require.NoError(t, err, "it was closed")
	}
	c := dial(t, h.paths[0])
	_, err := io.WriteString(c, "PUT /v1/result HTTP/1.1\r\nHost: task\r\nContent-Length: 10\r\n\r\n12345")
	require.NoError(t, err)
	_, err = h.task(0).Info(testContext(t))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	assert.NoFileExists(t, filepath.Join(h.logs, "0", "0", "result.json"))

	for _, request := range []string{"PUT /v1/result", "PUT /v1/error", "PUT /v1/progress", "POST /v1/barriers/x", "GET /v1/task", "POST /nowhere"} {
		c := dial(t, h.paths[0])
		_, err := io.WriteString(c, request+" HTTP/1.1\r\nHost: task\r\nContent-Length: 10\r\n\r\n{\"key")
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		answer, err := io.ReadAll(c) // until the connection closes
		require.NoError(t, err)
		if request == "GET /v1/task" || request == "POST /nowhere" {
			continue // answered without the body
		}
		assert.Contains(t, string(answer), "HTTP/1.1 408 ", request)
		assert.Contains(t, string(answer), wire.CodeTooSlow, request)
	}

	// A request's time limit does not apply to a wait.
	told := h.arrive(testContext(t), 0, "x")
	h.awaitArrived("x", 1)
	late := dial(t, h.paths[0])
	_, err = io.WriteString(late, "PUT /v1/result HTTP/1.1\r\nHost: task\r\nContent-Length: 10\r\n\r\n{\"key")
	require.NoError(t, err)
	require.NoError(t, late.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.ReadAll(late)
	require.NoError(t, err, "a later request has had its time")
	h.awaitArrived("x", 1)
	require.NoError(t, (<-h.arrive(testContext(t), 1, "x")).err)
	require.NoError(t, (<-told).err)
}

func TestSocketsArePrivate(t *testing.T) {
	h := newHost(t, 1)
	info := must.Get(os.Stat(h.dir))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	assert.LessOrEqual(t, len(h.paths[0]), privatedir.MaxSocketPath)
	assert.True(t, strings.HasPrefix(h.paths[0], h.state))
}

// If the state directory makes paths too long, the sockets are elsewhere.
func TestALongStateDirectory(t *testing.T) {
	short := must.Get(os.MkdirTemp("/tmp", "t"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	long := filepath.Join(short, strings.Repeat("x", 100))
	t.Setenv("TMPDIR", filepath.Join(short, "tmp"))
	s := must.Get(NewServer(Config{StateDir: long}))(t)
	defer s.Close()
	assert.True(t, strings.HasPrefix(s.dir, filepath.Join(short, "tmp", "clusterrun-")), s.dir)
	path := must.Get(s.Listen(Task{ID: runkey.Task{Task: "worker-0"}, View: &View{Members: []Member{{Task: "worker-0"}}}}))(t)
	_, err := clientAt(t, path).Info(testContext(t))
	require.NoError(t, err)
}

// A socket that was removed with its directory is recreated, immediately for the task's next
// process. Connections survive.
func TestASocketThatVanishedIsMadeAgain(t *testing.T) {
	h := newHost(t, 2)
	before := clientAt(t, h.paths[0])
	_, err := before.Info(testContext(t))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(h.dir))
	h.restore()
	for _, path := range h.paths {
		_, err = clientAt(t, path).Info(testContext(t))
		require.NoError(t, err)
	}
	_, err = before.Info(testContext(t))
	require.NoError(t, err)

	require.NoError(t, os.Remove(h.paths[0]))
	h.task(0)
	path := must.Get(h.Listen(Task{ID: h.ids[0], View: h.view}))(t)
	_, err = clientAt(t, path).Info(testContext(t))
	require.NoError(t, err)
}

// Sweep removes an earlier server's files of other runs.
func TestSweep(t *testing.T) {
	h := newHost(t, 1)
	other := runkey.Run{WorkflowID: "other"}
	_, err := h.Listen(Task{ID: runkey.Task{Run: other, Task: "worker-0"}, View: h.view})
	require.NoError(t, err)
	require.NoError(t, h.Close())
	h.start()
	h.Sweep([]runkey.Run{h.run})
	assert.DirExists(t, filepath.Join(h.dir, dirOf(h.run)))
	assert.NoDirExists(t, filepath.Join(h.dir, dirOf(other)))
	_, err = h.task(0).Info(testContext(t))
	require.NoError(t, err)
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for code, status := range statuses {
		assert.NotEmpty(t, http.StatusText(status), fmt.Sprint(code, " ", status))
	}
	for _, code := range []string{wire.CodeBarrierTimeout, wire.CodeNotThere, wire.CodeStopRefused, wire.CodeOver, wire.CodeUnavailable} {
		assert.NotZero(t, statuses[code])
	}
}

// An ended task's socket is closed, since a sweep has thousands of tasks; its next process gets
// one.
func TestATaskThatHasEndedHasNoSocket(t *testing.T) {
	h := newHost(t, 1)
	h.Ended(h.ids[0], false, "exited")
	require.FileExists(t, h.paths[0], "another process comes")
	h.Ended(h.ids[0], true, "exited")
	h.restore()
	require.NoFileExists(t, h.paths[0])
	require.Nil(t, h.tasks[h.ids[0]].listener)
	path := must.Get(h.Listen(h.tasks[h.ids[0]].view()))(t)
	c := must.Get(net.Dial("unix", path))(t)
	require.NoError(t, c.Close())
	h.Release(h.run)
}
