package remotehosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers"
)

// hostVariable makes the test binary act as the program on a host. Its value is the host's
// directory.
const hostVariable = "REMOTEHOSTS_TEST_HOST"

func TestMain(m *testing.M) {
	dir := os.Getenv(hostVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	err := Serve(context.Background(), os.Stdin, os.Stdout, ServeConfig{
		Version: "1", Parent: dir,
		StartWorker: func(o workers.Options, stdin *os.File, died func(error)) (Worker, error) {
			if o.Host == "bad" {
				return nil, errors.New("this host is bad")
			}
			w := &fakeWorker{o, died, stdin, make(chan []byte, 1)}
			if stdin == nil || o.Stdin == "unread" {
				w.read <- nil
				return w, nil
			}
			go func() {
				b, _ := io.ReadAll(stdin)
				w.read <- b
			}()
			return w, nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeWorker is a host worker without tasks that exits when it is asked to stop.
type fakeWorker struct {
	workers.Options
	died  func(error)
	stdin *os.File    // kept, because a pipe is closed when nothing refers to it
	read  chan []byte // receives its task's stdin
}

func (w *fakeWorker) StopAll(how supervisor.StopAll) {
	w.died(fmt.Errorf("told to stop with signal %d", how.Signal))
}

// Stop writes a process's logs, with the server's answer to its name.
func (w *fakeWorker) Stop(context.Context) {
	answer := "no answer"
	if c, err := net.Dial("unix", w.Server.Socket); err == nil {
		fmt.Fprintln(c, w.Host)
		answer, _ = bufio.NewReader(c).ReadString('\n')
		c.Close()
	}
	dir := tasklog.ProcessDir(tasklog.RunDir(w.LogRoot, "run", "execution"), 0, int(w.Host[0]-'a'))
	_ = tasklog.MakeDir(dir)
	_ = os.WriteFile(filepath.Join(dir, tasklog.StdoutFile), []byte(strings.Repeat(answer, 1e5)+"unfinished"), 0o600)
	_ = os.WriteFile(filepath.Join(dir, tasklog.ErrorFile), []byte("{}"), 0o600)
	if w.Stdin == w.Host {
		_ = os.WriteFile(filepath.Join(dir, tasklog.StderrFile), <-w.read, 0o600)
	}
}

// newConfig returns a configuration with local processes as hosts, and a server that greets each
// client by the name that it sends.
func newConfig(t *testing.T) (c Config, dir string) {
	t.Helper()
	dir = t.TempDir()
	server := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				name, _ := bufio.NewReader(conn).ReadString('\n')
				fmt.Fprint(conn, "hello "+name)
			}()
		}
	}()
	agent := filepath.Join(dir, "agent")
	self := must.Get(os.Executable())(t)
	// The shell sets a title, and leaves a child that writes from time to time.
	require.NoError(t, os.WriteFile(agent, []byte("#!/bin/sh\nprintf 'Welcome\\033]0;title\\007'\n"+
		"(while kill -0 $$ 2>&-; do printf 'mail\\r'; sleep 0.01; done) 2>&- &\n"+
		hostVariable+"="+dir+"/$1 "+self+"\n"), 0o700))
	return Config{
		Agent: []string{agent}, Version: "1",
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server.Addr().String())
		},
	}, dir
}

func named(names ...string) (hosts []Host) {
	for _, name := range names {
		hosts = append(hosts, Host{Name: name, Login: name, Options: workers.Options{Host: name}})
	}
	return hosts
}

// left returns the directories that runs left on a host.
func left(t *testing.T, dir, host string) []os.DirEntry {
	t.Helper()
	entries := must.Get(os.ReadDir(filepath.Join(dir, host)))(t)
	return entries
}

func noneAwaited([]string) {}

func TestHosts(t *testing.T) {
	c, dir := newConfig(t)
	s := must.Get(Launch(t.Context(), c, named("a", "b"), noneAwaited))(t)
	require.Len(t, s.Facts(), 2)
	assert.Positive(t, s.Facts()[1].CPUs)
	assert.NotEmpty(t, s.Facts()[1].Address)
	require.Len(t, left(t, dir, "a"), 1)
	info := must.Get(os.Stat(filepath.Join(dir, "a", left(t, dir, "a")[0].Name())))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "nobody else gets to the server through it")

	logs := t.TempDir()
	s.CopyOutput("run", "execution", logs, func(err error) { t.Error(err) }, nil)
	require.NoError(t, s.End(t.Context()))
	for rank, name := range []string{"a", "b"} {
		got := must.Get(os.ReadFile(filepath.Join(tasklog.ProcessDir(logs, 0, rank), tasklog.StdoutFile)))(t)
		assert.True(t, strings.Repeat("hello "+name+"\n", 1e5)+"unfinished" == string(got), "%d bytes", len(got))
		assert.FileExists(t, filepath.Join(tasklog.ProcessDir(logs, 0, rank), tasklog.ErrorFile))
		assert.Empty(t, left(t, dir, name))
	}
	assert.Empty(t, s.Lost())
	require.NoError(t, s.End(t.Context()), "there is nothing to end any more")
}

// The hosts' journals record how the tasks ended, and whether a process is alive.
func TestEnds(t *testing.T) {
	c, dir := newConfig(t)
	s := must.Get(Launch(t.Context(), c, named("a", "b"), noneAwaited))(t)
	defer s.Close()
	write := func(host, end string) {
		journal := filepath.Join(dir, host, left(t, dir, host)[0].Name())
		text := fmt.Sprintf(`{"type":"starting","task":%q,"fence":{}}`, host) + "\n" + end
		require.NoError(t, os.WriteFile(filepath.Join(journal, "0123456789abcdef.jsonl"), []byte(text), 0o600))
	}
	write("a", `{"type":"exited","task":"a","exit":{"code":3}}`+"\n")
	write("b", "")
	ends := must.Get(s.Ends(t.Context()))(t)
	assert.True(t, ends.Living)
	require.Len(t, ends.Exits, 1)
	assert.Equal(t, 3, ends.Exits["a"].ExitCode)
	write("b", `{"type":"exited","task":"b","exit":{}}`+"\n")
	assert.False(t, must.Get(s.Ends(t.Context()))(t).Living)
}

// Output that cannot be written here is passed on, and counts as incomplete.
func TestOutputThatCannotBeWritten(t *testing.T) {
	c, _ := newConfig(t)
	s := must.Get(Launch(t.Context(), c, named("a"), noneAwaited))(t)
	logs := t.TempDir()
	path := filepath.Join(tasklog.ProcessDir(logs, 0, 0), tasklog.StdoutFile)
	require.NoError(t, os.MkdirAll(path, 0o700))
	var got []byte
	s.CopyOutput("run", "execution", logs, func(err error) { t.Error(err) }, func(of string, data []byte) {
		assert.Equal(t, path, of)
		got = append(got, data...)
	})
	require.ErrorContains(t, s.End(t.Context()), "the output of host a is incomplete: open "+path)
	assert.True(t, strings.Repeat("hello a\n", 1e5)+"unfinished" == string(got), "%d bytes", len(got))
}

// Stdin reaches one host completely. A task that does not read it does not delay the rest.
func TestStdin(t *testing.T) {
	c, _ := newConfig(t)
	hosts := named("a", "b")
	hosts[0].Options.Stdin, hosts[1].Options.Stdin = "a", "unread"
	s := must.Get(Launch(t.Context(), c, hosts, noneAwaited))(t)
	logs, want := t.TempDir(), strings.Repeat("line\n", 1e6)
	s.CopyOutput("run", "execution", logs, func(err error) { t.Error(err) }, nil)
	told := make(chan error, 1)
	s.SendStdin("a", io.MultiReader(strings.NewReader(want), iotest.ErrReader(io.ErrNoProgress)), func(err error) { told <- err })
	unread := &endless{full: make(chan struct{})}
	s.SendStdin("b", unread, func(err error) { t.Error(err) })
	<-unread.full
	require.NoError(t, s.End(t.Context()))
	require.ErrorIs(t, <-told, io.ErrNoProgress)
	got := must.Get(os.ReadFile(filepath.Join(tasklog.ProcessDir(logs, 0, 0), tasklog.StderrFile)))(t)
	assert.True(t, want == string(got), "%d bytes", len(got))
	assert.FileExists(t, filepath.Join(tasklog.ProcessDir(logs, 0, 1), tasklog.StdoutFile))
}

// endless is a stdin without an end. full is closed once more of it was read than a request may
// have in transit.
type endless struct {
	read int
	full chan struct{}
}

func (e *endless) Read(b []byte) (int, error) {
	before := e.read
	if e.read += len(b); before <= 1<<20 && e.read > 1<<20 {
		close(e.full)
	}
	return len(b), nil
}

// If one host does not start, all hosts are stopped.
func TestAHostThatDoesNotStart(t *testing.T) {
	c, dir := newConfig(t)
	_, err := Launch(t.Context(), c, named("a", "bad"), noneAwaited)
	require.EqualError(t, err, "host bad: this host is bad")
	for _, host := range []string{"a", "bad"} {
		require.Eventually(t, func() bool { return len(left(t, dir, host)) == 0 }, 10*time.Second, time.Millisecond, host)
	}
}

func TestAHostOfAnotherVersion(t *testing.T) {
	c, dir := newConfig(t)
	c.Version = "2"
	_, err := Launch(t.Context(), c, named("a", "b"), noneAwaited)
	require.EqualError(t, err, "host a: its clusterrun is 1, this one is 2; install the same version\n"+
		"host b: its clusterrun is 1, this one is 2; install the same version")
	assert.NoDirExists(t, filepath.Join(dir, "a"))
}

func TestAHostThatHangs(t *testing.T) {
	c, _ := newConfig(t)
	c.Agent = []string{"sleep", "1000", "#"} // sleep: invalid time interval
	_, err := Launch(t.Context(), c, named("a"), noneAwaited)
	require.ErrorContains(t, err, "host a: sleep: ")

	hang := filepath.Join(t.TempDir(), "hang")
	require.NoError(t, os.WriteFile(hang, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	c.Agent = []string{hang}
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = Launch(ctx, c, named("a"), func(names []string) {
		assert.Equal(t, []string{"a"}, names)
		cancel(errors.New("it takes too long"))
	})
	require.EqualError(t, err, "host a: it takes too long")
}

// A lost host is reported, and its output is incomplete.
func TestALostHost(t *testing.T) {
	c, dir := newConfig(t)
	s := must.Get(Launch(t.Context(), c, named("a", "b"), noneAwaited))(t)
	s.CopyOutput("run", "execution", t.TempDir(), func(err error) { t.Error(err) }, nil)
	s.all[1].process.kill()
	require.EqualError(t, <-s.Lost(), "host b: agent: signal: killed")
	require.Eventually(t, func() bool { return len(left(t, dir, "b")) == 0 }, 10*time.Second, time.Millisecond, "it sees that")
	require.EqualError(t, s.End(t.Context()), "the output of host b is incomplete: its connection was closed")
}

// Hosts stop on request without the server, and report why they stopped.
func TestStopAll(t *testing.T) {
	c, _ := newConfig(t)
	s := must.Get(Launch(t.Context(), c, named("a"), noneAwaited))(t)
	defer s.Close()
	s.StopAll(t.Context(), supervisor.StopAll{Stops: supervisor.Stops{Stop: supervisor.Stop{Signal: 7}}})
	require.EqualError(t, <-s.Lost(), "host a: agent: told to stop with signal 7")
}

func TestFacts(t *testing.T) {
	isOwn := func(address string) bool { return address == "10.0.0.2" || address == "127.0.0.1" }
	f := factsOf([]string{"SSH_CONNECTION=10.0.0.1 5555 10.0.0.2 22", "CUDA_VISIBLE_DEVICES="}, isOwn)
	assert.Equal(t, "10.0.0.1", f.Peer)
	assert.Equal(t, "10.0.0.2", f.Address)
	assert.Equal(t, "CUDA_VISIBLE_DEVICES", f.GPUsLimitedBy)
	own := must.Get(os.Hostname())(t)
	assert.Equal(t, own, factsOf([]string{"SSH_CONNECTION=127.0.0.1 5555 127.0.0.1 22"}, isOwn).Address, "others cannot reach that")
	assert.Equal(t, own, factsOf([]string{"SSH_CONNECTION=10.0.0.1 5555 10.0.0.9 22"}, isOwn).Address, "it is of a session on another machine")
	assert.Equal(t, own, factsOf(nil, isOwn).Address)
}

// A host's output is written only to the run's logs.
func TestOutputStaysInTheLogs(t *testing.T) {
	dir := t.TempDir()
	for _, data := range []string{"a", "b"} {
		assert.Equal(t, 1, must.Get(appendTo(dir, piece{Path: "attempt_0/0/stdout.log", Data: []byte(data)}, map[string]bool{}))(t))
	}
	assert.Equal(t, "ab", must.Read(t, dir, "attempt_0/0/stdout.log"))
	for _, path := range []string{"../x", "/etc/x", "a/../../x"} {
		_, err := appendTo(dir, piece{Path: path}, map[string]bool{})
		assert.ErrorContains(t, err, "outside the logs", path)
	}
}

type noWorker struct{}

func (noWorker) StopAll(supervisor.StopAll) {}
func (noWorker) Stop(context.Context)       {}

// A host's home directory may be too long for a socket's path.
func TestAHostWithALongHome(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := &service{ended: make(chan struct{})}
	s.Parent = filepath.Join(t.TempDir(), strings.Repeat("h", 100))
	socket := ""
	s.StartWorker = func(o workers.Options, _ *os.File, _ func(error)) (Worker, error) {
		socket = o.Server.Socket
		return noWorker{}, nil
	}
	require.NoError(t, s.startWorker(workers.Options{}, Facts{}))
	_, err := os.Stat(socket)
	require.NoError(t, err)
	s.close()
	_, err = os.Stat(filepath.Dir(socket))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing of the run is left")
	left := must.Get(os.ReadDir(s.Parent))(t)
	assert.Empty(t, left)
}

// A request is read up to its limit.
func TestRequestsAreBounded(t *testing.T) {
	for body, want := range map[string]int{
		`{"workflow_id":"iris"}`: http.StatusOK,
		`{"workflow_id":`:        http.StatusBadRequest,
		`{"workflow_id":"` + strings.Repeat("x", maxMessage) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		answer := httptest.NewRecorder()
		var in outputRequest
		ok := read(answer, httptest.NewRequest(http.MethodPost, "/output", strings.NewReader(body)), &in)
		assert.Equal(t, want, answer.Code)
		assert.Equal(t, want == http.StatusOK, ok)
	}
}

// answering is a transport that answers every request with this body.
type answering []byte

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

// A piece of output is read up to its limit, and earlier pieces are kept.
func TestPiecesAreBounded(t *testing.T) {
	var sent bytes.Buffer
	pieces := gob.NewEncoder(&sent)
	for _, p := range []piece{{Path: "a", Data: make([]byte, maxPiece/2)}, {Path: "a", Data: make([]byte, maxPiece/2)}, {Path: "a", Data: make([]byte, maxPiece+1)}} {
		require.NoError(t, pieces.Encode(p))
	}
	h := &host{client: &http.Client{Transport: answering(sent.Bytes())}}
	dir := t.TempDir()
	err := h.copyOutput(context.Background(), outputRequest{}, dir, func(error) {}, nil)
	assert.EqualError(t, err, "it sends more than 8 MiB of a file at a time")
	assert.FileExists(t, dir+"/a")
}
