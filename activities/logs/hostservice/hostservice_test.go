package hostservice

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// host is a host that serves files.
type host struct {
	*Server
	t     *testing.T
	run   runkey.Run
	dir   string // of the run's logs
	state string
	over  chan struct{}
}

func newHost(t *testing.T) *host {
	h := &host{
		t: t, run: runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "0199-aa"},
		dir: filepath.Join(t.TempDir(), "iris"), state: t.TempDir(), over: make(chan struct{}),
	}
	h.serve()
	return h
}

func (h *host) serve() {
	h.t.Helper()
	s := must.Get(Listen(Config{Host: "host-b", StateDir: h.state, Listen: "127.0.0.1"}))(h.t)
	h.Server = s
	go s.Serve(func(ctx context.Context, run runkey.Run) {
		assert.Equal(h.t, h.run, run)
		select {
		case <-ctx.Done():
		case <-h.over:
		}
	})
	h.t.Cleanup(s.Close)
}

// write appends to a process's file.
func (h *host) write(attempt, rank int, file, text string) {
	h.t.Helper()
	dir := tasklog.ProcessDir(h.dir, attempt, rank)
	require.NoError(h.t, os.MkdirAll(dir, 0o755))
	f := must.Get(os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))(h.t)
	_, err := f.WriteString(text)
	require.NoError(h.t, err)
	require.NoError(h.t, f.Close())
}

func (h *host) service() spec.HostService { return *h.Describe(h.run, h.dir, nil) }

func (h *host) client(s spec.HostService) *Client {
	c := NewClient(s, h.run.RunID)
	h.t.Cleanup(c.Close)
	return c
}

// sink keeps what is delivered.
type sink struct {
	t    *testing.T
	mu   sync.Mutex
	text map[tasklog.Stream]string
	// changed receives an element after each delivery.
	changed chan struct{}
}

func newSink(t *testing.T) *sink {
	return &sink{t: t, text: map[tasklog.Stream]string{}, changed: make(chan struct{}, 1)}
}

func (s *sink) deliver(c tasklog.Chunk) {
	s.mu.Lock()
	before := s.text[c.Stream]
	assert.EqualValues(s.t, len(before), c.Offset, "lost or doubled")
	assert.Equal(s.t, before == "" || strings.HasSuffix(before, "\n"), c.Start)
	s.text[c.Stream] = before + string(c.Data)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// await waits until a stream contains text.
func (s *sink) await(st tasklog.Stream, text string) {
	s.t.Helper()
	for deadline := time.After(time.Minute); ; {
		s.mu.Lock()
		got := s.text[st]
		s.mu.Unlock()
		if got == text {
			return
		}
		select {
		case <-s.changed:
		case <-deadline:
			s.t.Fatalf("got %q, want %q", got, text)
		}
	}
}

func (s *sink) options(o FollowOptions) FollowOptions {
	o.OnError = func(err error) { assert.NoError(s.t, err) }
	if o.OnTrouble == nil {
		o.OnTrouble = func(err error) { assert.NoError(s.t, err) }
	}
	return o
}

func TestAllThatIsThere(t *testing.T) {
	h, s := newHost(t), newSink(t)
	h.write(0, 1, tasklog.StdoutFile, "one\ntwo\n")
	h.write(0, 1, tasklog.StderrFile, "oops\n")
	h.write(1, 1, tasklog.StdoutFile, "three\nfou")
	h.write(0, 12, tasklog.StdoutFile, strings.Repeat("x", 1<<20))
	c := h.client(h.service())
	listing := must.Get(c.List(t.Context()))(t)
	attempts := listing.Attempts
	assert.Equal(t, map[int][]int{1: {0, 1}, 12: {0}}, attempts)

	f := c.Follow(s.deliver, s.options(FollowOptions{}))
	require.NoError(t, f.Stop(t.Context()))
	assert.Equal(t, attempts, f.Attempts())
	assert.Equal(t, map[tasklog.Stream]string{
		{Rank: 1}: "one\ntwo\n", {Rank: 1, Stderr: true}: "oops\n", {Rank: 1, Attempt: 1}: "three\nfou",
		{Rank: 12}: strings.Repeat("x", 1<<20),
	}, s.text)

	part := map[tasklog.Stream]string{}
	f = c.Follow(func(c tasklog.Chunk) { part[c.Stream] += string(c.Data) }, s.options(FollowOptions{
		Selection: tasklog.Selection{Ranks: []int{1}, OnlyStdout: true, Tail: 1},
	}))
	require.NoError(t, f.Stop(t.Context()))
	assert.Equal(t, map[tasklog.Stream]string{{Rank: 1}: "two\n", {Rank: 1, Attempt: 1}: "fou"}, part)
}

// All output is delivered once, before the end is reported, even if a host worker is away in the
// middle of a line.
func TestFollowedThroughARestart(t *testing.T) {
	h, s := newHost(t), newSink(t)
	trouble := make(chan error, 10)
	out := tasklog.Stream{Rank: 3}
	h.write(0, 3, tasklog.StdoutFile, "one\n")
	f := h.client(h.service()).Follow(s.deliver, s.options(FollowOptions{Live: true, OnTrouble: func(err error) { trouble <- err }}))
	s.await(out, "one\n")
	h.write(0, 3, tasklog.StdoutFile, "tw")
	s.await(out, "one\ntw")

	before := h.Address()
	h.Close()
	h.write(0, 3, tasklog.StdoutFile, "o\nthree\n")
	assert.ErrorContains(t, <-trouble, "host host-b at "+before)
	h.serve()
	require.Equal(t, before, h.Address(), "clients know no other")
	assert.NoError(t, <-trouble)
	s.await(out, "one\ntwo\nthree\n")

	h.write(1, 3, tasklog.StdoutFile, "again\n")
	s.await(tasklog.Stream{Rank: 3, Attempt: 1}, "again\n")
	h.write(1, 3, tasklog.StdoutFile, "the end has no newline")
	require.NoError(t, f.Stop(t.Context()))
	s.await(tasklog.Stream{Rank: 3, Attempt: 1}, "again\nthe end has no newline")
	assert.Equal(t, map[int][]int{3: {0, 1}}, f.Attempts())
}

// A run may come back to a host that it has released.
func TestAfterTheEnd(t *testing.T) {
	h, s := newHost(t), newSink(t)
	h.write(0, 0, tasklog.StdoutFile, "one\n")
	f := h.client(h.service()).Follow(s.deliver, s.options(FollowOptions{Live: true}))
	close(h.over)
	s.await(tasklog.Stream{}, "one\n")
	h.write(0, 0, tasklog.StdoutFile, "two\n")
	require.NoError(t, f.Stop(t.Context()))
	s.await(tasklog.Stream{}, "one\ntwo\n")
}

// relay passes bytes from a service to its clients, and closes each connection after some of them.
type relay struct {
	net.Listener
	to    string
	after int64
	// passed counts the bytes sent to clients.
	passed atomic.Int64
}

func newRelay(t *testing.T, to string, after int64) *relay {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	r := &relay{Listener: l, to: to, after: after}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, from) }()
	_, _ = io.CopyN(io.MultiWriter(from, r), to, r.after)
}

func (r *relay) Write(b []byte) (int, error) {
	r.passed.Add(int64(len(b)))
	return len(b), nil
}

// A connection that is cut off at any byte is resumed at that byte.
func TestCutOffAgainAndAgain(t *testing.T) {
	h, s := newHost(t), newSink(t)
	var want strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&want, "line %d of those that are cut\n", i)
	}
	h.write(0, 0, tasklog.StdoutFile, want.String())
	service := h.service()
	service.Address = newRelay(t, service.Address, 400_123).Addr().String()
	c := h.client(service)
	c.giveUpAfter = time.Hour // regardless of the machine's load
	f := c.Follow(s.deliver, s.options(FollowOptions{}))
	require.NoError(t, f.Stop(t.Context()))
	assert.Equal(t, want.String(), s.text[tasklog.Stream{}])
}

// If the host closes a connection without an answer, the client repeats the request until the host
// worker is replaced by its successor and the request succeeds.
func TestClosedWithoutAnAnswer(t *testing.T) {
	h := newHost(t)
	h.write(0, 1, tasklog.StdoutFile, "one\n")
	service := h.service()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	behind := service.Address
	service.Address = l.Addr().String()
	go func() {
		for range 3 {
			exiting, err := l.Accept()
			if err != nil {
				return
			}
			_ = exiting.Close()
		}
		second, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", behind)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(to, second) }()
		_, _ = io.Copy(second, to)
	}()
	listing := must.Get(h.client(service).List(t.Context()))(t)
	assert.Equal(t, map[int][]int{1: {0}}, listing.Attempts)
}

// A follower gives up on a host that does not send the existing output, and returns an error.
func TestTruncated(t *testing.T) {
	h, s := newHost(t), newSink(t)
	h.write(0, 0, tasklog.StdoutFile, strings.Repeat("x", 300_000)+"\n")
	service := h.service()
	service.Address = newRelay(t, service.Address, 100_000).Addr().String()
	c := h.client(service)
	c.giveUpAfter = 0
	f := c.Follow(s.deliver, s.options(FollowOptions{}))
	assert.ErrorContains(t, f.Stop(t.Context()), "host host-b at "+service.Address)
	assert.Empty(t, s.text)
	_, err := h.client(service).ReadFile(t.Context(), 0, 0, "stdout")
	assert.Error(t, err)
}

func TestWhoMayRead(t *testing.T) {
	h := newHost(t)
	h.write(0, 0, tasklog.StdoutFile, "secret\n")
	right := h.service()
	other := h.run
	other.RunID = "0199-bb"
	ofOther := *h.Describe(other, h.dir, nil)
	elsewhere := *newHost(t).Describe(h.run, h.dir, nil)
	text, signature, _ := strings.Cut(right.Token, ".")
	answers := map[string]bool{}
	for name, token := range map[string]string{
		"none": "", "of another run": ofOther.Token, "of another host": elsewhere.Token,
		"unsigned": text, "half": right.Token[:len(right.Token)-4], "the signature alone": "." + signature,
	} {
		service := right
		service.Token = token
		c := h.client(service)
		for _, ask := range []func() error{
			func() error { _, err := c.List(t.Context()); return err },
			func() error { _, err := c.ReadFile(t.Context(), 0, 0, "stdout"); return err },
			func() error { _, err := c.ReadFile(t.Context(), 7, 7, "result"); return err },
			func() error { return c.Follow(nil, FollowOptions{}).Stop(t.Context()) },
		} {
			err := ask()
			require.ErrorIs(t, err, fs.ErrNotExist, name)
			answers[err.Error()] = true
		}
	}
	assert.Len(t, answers, 1, "all are answered alike")

	wrong := right
	wrong.Fingerprint = strings.Repeat("ab", 32)
	_, err := h.client(wrong).List(t.Context())
	assert.ErrorIs(t, err, errCertificate)
	assert.ErrorIs(t, h.client(wrong).Follow(nil, FollowOptions{}).Stop(t.Context()), errCertificate, "at once")

	_, err = h.client(right).List(t.Context())
	assert.NoError(t, err)
	info := must.Get(os.Stat(filepath.Join(h.state, identityFile)))(t)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

// get requests a file like any program, and returns the body and the trailer.
func (h *host) get(path string) (code int, body, end string) {
	h.t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // HTTP/1.1
	defer client.CloseIdleConnections()
	request := must.Get(http.NewRequestWithContext(h.t.Context(), http.MethodGet, "https://"+h.Address()+"/v1/runs/"+h.run.RunID+path, nil))(h.t)
	request.Header.Set("Authorization", "Bearer "+h.service().Token)
	response := must.Get(client.Do(request))(h.t)
	defer response.Body.Close()
	b := must.Get(io.ReadAll(response.Body))(h.t)
	return response.StatusCode, string(b), response.Trailer.Get(endTrailer)
}

func TestFiles(t *testing.T) {
	h := newHost(t)
	h.write(2, 1, tasklog.StdoutFile, "one\ntwo\n")
	h.write(2, 1, tasklog.ErrorFile, `{"message": "x"}`)
	h.write(2, 1, tasklog.ResultFile, `[1, 2]`)
	const stacks = "stacks-20260102T030405.678Z-2.txt"
	h.write(2, 1, stacks, "What worker-1 was doing")
	c := h.client(h.service())
	for file, want := range map[string]string{"stdout": "one\ntwo\n", "error": `{"message": "x"}`, "result": "[1, 2]", stacks: "What worker-1 was doing"} {
		b := must.Get(c.ReadFile(t.Context(), 1, 2, file))(t)
		assert.Equal(t, want, string(b))
	}
	for _, missing := range []string{"stderr", "plan", "times", "stacks-", "stacks-x.txt"} {
		_, err := c.ReadFile(t.Context(), 1, 2, missing)
		assert.ErrorIs(t, err, fs.ErrNotExist)
	}
	const of = "/tasks/1/attempts/2/"
	code, body, end := h.get(of + "stdout")
	assert.Equal(t, []any{200, "one\ntwo\n", "8"}, []any{code, body, end})
	for path, want := range map[string]int{
		"/tasks/x/attempts/2/stdout": 404, "/tasks/1/attempts/../stdout": 404, of + "..%2Fstdout": 404, of + "stacks-..%2F" + stacks: 404,
	} {
		code, _, _ := h.get(path)
		assert.Equal(t, want, code, path)
	}
}

// A value may be of any size. A file that is read into memory may not, and is not truncated either.
func TestLargeFiles(t *testing.T) {
	h := newHost(t)
	large := strings.Repeat("0123456789abcde\n", maxFile/16+1)
	h.write(0, 0, tasklog.ResultFile, large)
	h.write(0, 1, tasklog.ResultFile, large[:maxFile])
	c := h.client(h.service())
	var got strings.Builder
	require.NoError(t, c.EachPiece(t.Context(), 0, 0, "result", func(piece []byte, offset int64) error {
		assert.EqualValues(t, got.Len(), offset)
		got.Write(piece)
		return nil
	}))
	assert.True(t, large == got.String(), "%d bytes of %d", got.Len(), len(large))
	_, err := c.ReadFile(t.Context(), 0, 0, "result")
	assert.ErrorContains(t, err, "the result file exceeds 16 MiB")
	b := must.Get(c.ReadFile(t.Context(), 1, 0, "result"))(t)
	assert.Len(t, b, maxFile)
	full := errors.New("full")
	assert.ErrorIs(t, c.EachPiece(t.Context(), 0, 0, "result", func([]byte, int64) error { return full }), full)
}

func TestPrunedAttempts(t *testing.T) {
	h := newHost(t)
	for n := range 25 {
		h.write(n, 0, tasklog.StdoutFile, strconv.Itoa(n)+"\n")
	}
	require.NoError(t, tasklog.Prune(h.dir, 0, tasklog.KeepAttempts))
	c := h.client(h.service())
	listing := must.Get(c.List(t.Context()))(t)
	attempts := listing.Attempts
	from, to, ok := tasklog.Pruned(attempts[0])
	assert.Equal(t, []any{1, 4, true}, []any{from, to, ok})
	_, err := c.ReadFile(t.Context(), 0, 3, "stdout")
	assert.ErrorContains(t, err, "attempts 1 to 4 of the task have been removed")
	b := must.Get(c.ReadFile(t.Context(), 0, 24, "stdout"))(t)
	assert.Equal(t, "24\n", string(b))
}

// The host waits for a slow reader, who gets everything afterwards. The buffers in between are
// limited, so the host cannot have read the whole file before the reader starts.
func TestSlowReader(t *testing.T) {
	h := newHost(t)
	const size = 64 << 20
	h.write(0, 0, tasklog.StdoutFile, strings.Repeat(strings.Repeat("x", 99)+"\n", size/100))
	var got int64
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	service := h.service()
	way := newRelay(t, service.Address, 10*size)
	service.Address = way.Addr().String()
	f := h.client(service).Follow(func(c tasklog.Chunk) {
		once.Do(func() {
			close(begun)
			<-goOn
		})
		got += int64(len(c.Data))
	}, newSink(t).options(FollowOptions{}))
	<-begun
	// Meanwhile the service answers other requests.
	for range 20 {
		_, err := h.client(h.service()).List(t.Context())
		require.NoError(t, err)
	}
	assert.Less(t, way.passed.Load(), int64(size/2))
	close(goOn)
	require.NoError(t, f.Stop(t.Context()))
	assert.EqualValues(t, size/100*100, got)
}

// A client that has gone does not occupy the service, and a full service reports that. It still
// answers other hosts.
func TestTooManyRequests(t *testing.T) {
	h := newHost(t)
	h.write(0, 0, tasklog.StdoutFile, "one\n")
	for range maxRequests {
		h.requests <- struct{}{}
	}
	_, err := h.client(h.service()).List(t.Context())
	assert.ErrorContains(t, err, "too many requests")
	assert.False(t, isFinal(err))
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "0199-aa"}
	_, err = NewClient(*h.DescribeWitness(run), run.RunID).Ask(t.Context(), Question{})
	require.NoError(t, err)
	for range maxRequests {
		<-h.requests
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newSink(t)
	f := h.client(h.service()).Follow(s.deliver, s.options(FollowOptions{Live: true}))
	s.await(tasklog.Stream{}, "one\n")
	f.stop()
	cancel()
	assert.ErrorIs(t, f.Stop(ctx), context.Canceled)
	for range maxRequests { // this succeeds only once the follower's request is over
		h.requests <- struct{}{}
	}
}

func TestListen(t *testing.T) {
	h := newHost(t)
	_, err := Listen(Config{StateDir: t.TempDir(), Listen: h.Address()})
	assert.ErrorContains(t, err, "--listen "+h.Address()+": another program already listens there; use another port")
	_, err = Listen(Config{StateDir: t.TempDir(), Listen: "127.0.0.1:ssh:x"})
	assert.ErrorContains(t, err, "--listen")
	for _, c := range []struct{ listen, advertise, want string }{
		{"127.0.0.1:0", "", "127.0.0.1:PORT"},
		{":0", "", "127.0.0.1:PORT"}, // the address from which it reaches the peer
		{"", "", "127.0.0.1:PORT"},
		{"127.0.0.1", "gpu-2", "gpu-2:PORT"},
		{"127.0.0.1", "gpu-2:80", "gpu-2:80"},
		{"[::1]", "fe80::1", "[fe80::1]:PORT"},
	} {
		s, err := Listen(Config{StateDir: filepath.Join(t.TempDir(), "state"), Listen: c.listen, Advertise: c.advertise, Peer: "127.0.0.1:7233"})
		if c.listen == "[::1]" && err != nil {
			continue // this machine does not have IPv6
		}
		require.NoError(t, err)
		assert.Equal(t, strings.ReplaceAll(c.want, "PORT", portOf(s.listener.Addr())), s.Address(), "%+v", c)
		s.Close()
	}
	require.NoError(t, os.WriteFile(filepath.Join(h.state, identityFile), []byte("x"), 0o600))
	_, err = Listen(Config{StateDir: h.state, Listen: "127.0.0.1"})
	assert.ErrorContains(t, err, "is damaged")
}

// Records of a later version may contain more fields.
func TestRecordsOfALaterVersion(t *testing.T) {
	var r record
	require.NoError(t, json.NewDecoder(bytes.NewReader([]byte(`{"rank":1,"attempt":0,"stderr":true,"offset":7,"length":3,"colour":"red"}`))).Decode(&r))
	assert.Equal(t, record{Stream: tasklog.Stream{Rank: 1, Stderr: true}, Offset: 7, Length: 3}, r)
}

// Another host of the run asks with the witness's token, which does not read files, and a token for
// files does not ask.
func TestAnotherHostAsks(t *testing.T) {
	h := newHost(t)
	question := Question{Task: "worker-1", Generation: 2, Offer: 7, Token: []byte{1}, Beat: spec.Heartbeat{PID: 4711}}
	h.AnswerBy(func(_ context.Context, run runkey.Run, q Question) lease.Answer {
		assert.Equal(t, h.run, run)
		assert.Equal(t, question, q)
		return lease.Silent
	})
	asks := NewClient(*h.DescribeWitness(h.run), h.run.RunID)
	defer asks.Close()
	answer := must.Get(asks.Ask(t.Context(), question))(t)
	assert.Equal(t, lease.Silent, answer)
	_, err := asks.List(t.Context())
	require.Error(t, err, "the token of the witness reads files")
	answer = must.Get(asks.Ask(t.Context(), Question{}))(t)
	assert.Equal(t, lease.Denied, answer, "an empty question")

	reads := NewClient(*h.Describe(h.run, h.dir, nil), h.run.RunID)
	defer reads.Close()
	_, err = reads.Ask(t.Context(), question)
	require.Error(t, err, "a token for files asks")
	elsewhere := NewClient(*h.DescribeWitness(runkey.Run{RunID: "another"}), h.run.RunID)
	defer elsewhere.Close()
	_, err = elsewhere.Ask(t.Context(), question)
	require.Error(t, err, "the token of another run asks")
}

// A run's files are read as its user, even if its directory is missing or a path leads to root's
// files.
func TestFilesAreReadAsTheUserOfTheRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	user, err := hostuser.Lookup(t.Context(), "nobody")
	require.NoError(t, err)
	h := newHost(t)
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(h.dir)), 0o711))
	h.write(0, 0, tasklog.StdoutFile, "the secret\n")
	h.write(0, 0, tasklog.ResultFile, "1")
	secret := tasklog.ProcessDir(h.dir, 0, 0)
	require.NoError(t, os.Chmod(secret, 0o700))

	// The directory belongs to root.
	c := h.client(*h.Describe(h.run, h.dir, user))
	for _, file := range []string{"stdout", "result"} {
		_, err = c.ReadFile(t.Context(), 0, 0, file)
		require.Error(t, err, file)
	}
	// The directory is missing, and then a link takes its place.
	later := filepath.Join(filepath.Dir(h.dir), "later")
	c = h.client(*h.Describe(h.run, later, user))
	response := must.Get(c.ask(t.Context(), http.MethodPost, "/output", Query{Follow: true}))(t)
	require.NoError(t, os.MkdirAll(later, 0o755))
	require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(later, "attempt_0")))
	close(h.over)
	b, _ := io.ReadAll(response.Body) // the body may be cut off
	require.NoError(t, response.Body.Close())
	assert.NotContains(t, string(b), "secret")

	// The user's own files are read.
	for _, path := range []string{secret, filepath.Join(secret, tasklog.StdoutFile)} {
		require.NoError(t, os.Chown(path, int(user.UID), int(user.GID)))
	}
	b = must.Get(h.client(*h.Describe(h.run, h.dir, user)).ReadFile(t.Context(), 0, 0, "stdout"))(t)
	assert.Equal(t, "the secret\n", string(b))

	// This token does not name the files' owner.
	_, err = h.client(*h.describe(grant{Run: h.run, Dir: h.dir})).ReadFile(t.Context(), 0, 0, "stdout")
	require.ErrorContains(t, err, "the token does not name the files' owner")
}

// keeping returns a host that keeps archives.
func keeping(t *testing.T) (*Server, *shipped.Store, string) {
	t.Helper()
	state := t.TempDir()
	store := shipped.Open(state)
	s := must.Get(Listen(Config{Host: "host-b", StateDir: state, Listen: "127.0.0.1", Archives: store}))(t)
	go s.Serve(func(context.Context, runkey.Run) {})
	t.Cleanup(s.Close)
	return s, store, state
}

func clientOf(t *testing.T, s *spec.HostService) *Client {
	c := NewClient(*s, "")
	t.Cleanup(c.Close)
	return c
}

// buffer is a sink.
type buffer struct{ bytes.Buffer }

func (b *buffer) Len() int64 { return int64(b.Buffer.Len()) }

func TestArchives(t *testing.T) {
	s, store, state := keeping(t)
	content := []byte(strings.Repeat("any bytes will do\n", 10_000))
	sum := sha256.Sum256(content)
	a := spec.Archive{Digest: hex.EncodeToString(sum[:]), Size: len(content)}
	reader := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(content)) }
	stores := clientOf(t, s.DescribeStore())

	wrong := a
	wrong.Digest = strings.Repeat("0", 64)
	_, err := stores.StoreArchive(t.Context(), wrong, shipped.Upload{WorkflowID: "iris"}, reader())
	assert.ErrorContains(t, err, "host host-b at "+s.Address()+": the archive has the digest "+a.Digest)
	assert.False(t, store.Has(wrong.Digest))
	wrong.Digest = "../evil"
	_, err = stores.StoreArchive(t.Context(), wrong, shipped.Upload{WorkflowID: "iris"}, reader())
	require.Error(t, err)
	_, err = stores.StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: ""}, reader())
	assert.ErrorContains(t, err, "specify the archive's digest, its length, and the run")

	from := must.Get(stores.StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: "iris"}, reader()))(t)
	assert.True(t, store.Has(a.Digest))
	var got buffer
	got.Write(content[:1000]) // from an earlier try
	require.NoError(t, clientOf(t, from).ReadArchive(t.Context(), a, &got))
	assert.Equal(t, content, got.Bytes())

	less := a
	less.Size = 2000 // of the directory that the run claims to ship
	got.Reset()
	assert.ErrorContains(t, clientOf(t, from).ReadArchive(t.Context(), less, &got), "it sends more than the archive's 2000 bytes")
	assert.Equal(t, 2001, got.Buffer.Len())

	unending, w := io.Pipe()
	again, err := stores.StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: "other"}, unending)
	require.NoError(t, w.Close())
	require.NoError(t, err, "it is there, and need not be sent")
	assert.Equal(t, from, again)
	notes := must.Get(filepath.Glob(filepath.Join(state, "shipped", "uploads", a.Digest+"-*")))(t)
	assert.Len(t, notes, 2, "two runs have it from here")

	for name, service := range map[string]*spec.HostService{
		"to read it": from, "of a run": s.Describe(runkey.Run{RunID: "0199-aa"}, "/logs", nil), "of another archive": s.DescribeArchive(wrong.Digest),
	} {
		_, err := clientOf(t, service).StoreArchive(t.Context(), a, shipped.Upload{WorkflowID: "iris"}, reader())
		assert.ErrorIs(t, err, fs.ErrNotExist, "a token "+name)
	}
	_, err = NewClient(*from, "0199-aa").List(t.Context())
	assert.ErrorIs(t, err, fs.ErrNotExist, "the files of runs are not for it")
}
