package tcpstore

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/tests/must"
)

func serve(t *testing.T) *Server {
	s := must.Get(Listen("127.0.0.1:0", zap.NewNop()))(t)
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	c := must.Get(net.Dial("tcp", s.listener.Addr().String()))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answered sends a request and requires this answer.
func answered(t *testing.T, c net.Conn, q *request, want reply) {
	_, err := c.Write(sent(numbers22, q))
	require.NoError(t, err)
	got := make(reply, len(want))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAClientWakesAnother(t *testing.T) {
	s := serve(t)
	a, b := dial(t, s), dial(t, s)
	_, err := a.Write(append(hello, sent(numbers22, &request{op: opWait, keys: []string{"k"}})...))
	require.NoError(t, err)
	_, err = b.Write(append(hello, sent(numbers22, &request{op: opSet, keys: []string{"k"}, values: [][]byte{[]byte("v")}})...))
	require.NoError(t, err)
	_, err = io.ReadFull(a, make([]byte, 1))
	require.NoError(t, err)
	answered(t, a, &request{op: opGet, keys: []string{"k"}}, reply{}.text([]byte("v")))
}

// A client that does not send valid requests is disconnected, and the others are
// served.
func TestAStrangerIsDisconnected(t *testing.T) {
	s := serve(t)
	stranger, c := dial(t, s), dial(t, s)
	_, err := stranger.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	_, err = io.ReadAll(stranger) // the connection ends, with or without a reset
	_ = err
	_, err = c.Write(hello)
	require.NoError(t, err)
	answered(t, c, &request{op: opPing, number: 7}, reply{7, 0, 0, 0})
}

// A client that reads nothing does not make others wait.
func TestAClientThatDoesNotReadIsWaitedFor(t *testing.T) {
	s := serve(t)
	lazy, c := dial(t, s), dial(t, s)
	value := make([]byte, 8<<20)
	_, err := lazy.Write(append(hello, sent(numbers22, &request{op: opSet, keys: []string{"k"}, values: [][]byte{value}})...))
	require.NoError(t, err)
	for range 8 {
		_, err = lazy.Write(sent(numbers22, &request{op: opGet, keys: []string{"k"}}))
		require.NoError(t, err)
	}
	_, err = c.Write(hello)
	require.NoError(t, err)
	answered(t, c, &request{op: opPing, number: 7}, reply{7, 0, 0, 0})
	got := make([]byte, 8*(8+len(value)))
	_, err = io.ReadFull(lazy, got)
	require.NoError(t, err, "once it reads, it gets everything")
}

// All watchers are sent the same slice, because values may be large and watchers many.
func TestWatchersAreSentOneSlice(t *testing.T) {
	const watchers, size = 32, 512 << 10
	s := serve(t)
	for range watchers {
		c := dial(t, s)
		_, err := c.Write(sent(numbers20, &request{op: opWatch, keys: []string{"k"}}))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
	}
	c := dial(t, s)
	_, err := c.Write(hello)
	require.NoError(t, err)
	set := sent(numbers22, &request{op: opSet, keys: []string{"k"}, values: [][]byte{make([]byte, size)}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = c.Write(set)
	require.NoError(t, err)
	answered(t, c, &request{op: opPing, number: 7}, reply{7, 0, 0, 0})
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(watchers*size/2))
}

// connected returns the connection of a client that reads from the other end of a pipe.
func connected(s *Server) (*conn, net.Conn) {
	ours, theirs := net.Pipe()
	s.connect(ours)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[s.last], theirs
}

// Unsent bytes of a client that is gone do not count against the others.
func TestAClientGoesBeforeItHasReadEverything(t *testing.T) {
	s := serve(t)
	c, end := connected(s)
	send := func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.send(reply(text))
	}
	send("half of this is written")
	_, err := io.ReadFull(end, make([]byte, 1))
	require.NoError(t, err)
	send("and this is not begun")
	require.NoError(t, end.Close())
	s.Close()
	send("nor is this")
	require.Zero(t, s.unsent.Load())
}

func TestAClientIsDisconnectedIfTooMuchIsUnsent(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	s.unsent.Add(maxUnsentToAll)
	_, err := c.Write(append(slices.Clone(hello), sent(numbers22, &request{op: opPing})...))
	require.NoError(t, err)
	got, _ := io.ReadAll(c) // the connection ends, with or without a reset
	require.Empty(t, got)
	s.Close()
	require.Equal(t, int64(maxUnsentToAll), s.unsent.Load())
}

// Clients that stop in the middle of a large value do not keep others from sending one.
func TestAClientThatDoesNotSendTheRest(t *testing.T) {
	s := serve(t)
	value := make([]byte, 1<<20)
	set := append(slices.Clone(hello), sent(numbers22, &request{op: opSet, keys: []string{"k"}, values: [][]byte{value}})...)
	for range 8 {
		_, err := dial(t, s).Write(set[:100])
		require.NoError(t, err)
	}
	c := dial(t, s)
	_, err := c.Write(set)
	require.NoError(t, err)
	answered(t, c, &request{op: opPing, number: 7}, reply{7, 0, 0, 0})
}

// While too much is being read, small requests are still answered.
func TestALargeValueIsRefusedWhileTooMuchIsRead(t *testing.T) {
	s := serve(t)
	s.read.Add(maxRead)
	large, c := dial(t, s), dial(t, s)
	set := sent(numbers22, &request{op: opSet, keys: []string{"k"}, values: [][]byte{make([]byte, 2*piece)}})
	// The connection ends, with or without a reset.
	_, _ = large.Write(append(slices.Clone(hello), set...))
	_, _ = io.ReadAll(large)
	_, err := c.Write(hello)
	require.NoError(t, err)
	answered(t, c, &request{op: opGet, keys: []string{"k"}}, reply{}.text(nil))
	s.Close()
	require.Equal(t, int64(maxRead), s.read.Load())
}

func TestCloseFreesThePort(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	_, err := c.Write(hello)
	require.NoError(t, err)
	answered(t, c, &request{op: opPing, number: 7}, reply{7, 0, 0, 0})
	address := s.listener.Addr().String()
	s.Close()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	again := must.Get(Listen(address, zap.NewNop()))(t)
	again.Close()
}

// The clients of the installed torch work with this server.
func TestClientsOfTorch(t *testing.T) {
	const python = "/usr/bin/python3" // where distributions put a packaged torch
	if testing.Short() {
		t.Skip("importing torch takes a while")
	}
	port := serve(t).listener.Addr().(*net.TCPAddr).Port
	out, err := exec.Command(python, "-c", `
import sys, threading
from datetime import timedelta
try:
    from torch.distributed import TCPStore, PrefixStore
except ImportError:
    sys.exit(77)

def client(seconds=60):
    return TCPStore("127.0.0.1", int(sys.argv[1]), 2, False, timedelta(seconds=seconds))

a, b = client(), client()
a.set("k", "v")
assert b.get("k") == b"v"
assert b.add("n", 5) == 5 and a.add("n", -2) == 3
assert a.compare_set("c", "", "one") == b"one"
assert b.compare_set("c", "two", "three") == b"one"
assert b.compare_set("c", "one", "two") == b"two"
before = a.num_keys()
assert b.delete_key("c") and not b.delete_key("c")
assert a.num_keys() == before - 1
got = []
waits = threading.Thread(target=lambda: got.append(client().get("late")))
waits.start()
PrefixStore("p", a).set("k", "w")
assert PrefixStore("p", b).get("k") == b"w" and b.get("k") == b"v"
a.set("late", "now")
waits.join()
assert got == [b"now"], got
b.set_timeout(timedelta(milliseconds=50))
try:
    b.wait(["never"])
    raise AssertionError("nothing was waited for")
except RuntimeError:
    pass
a.set("large", "x" * 1000000)
assert client().get("large") == b"x" * 1000000
`, strconv.Itoa(port)).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.As(err, &exit) && exit.ExitCode() == 77 {
		t.Skip("needs torch for " + python)
	}
	require.NoError(t, err, "%s", out)
}
