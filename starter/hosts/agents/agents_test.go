package agents

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func key(t *testing.T, secret string) []byte {
	t.Helper()
	k := must.Get(Key([]byte("sixteen bytes and " + secret)))(t)
	return k
}

func request(host string) Request {
	return Request{Version: "1", ID: "job", Host: host, Rank: -1, Spec: map[string]json.RawMessage{"command": json.RawMessage(`["train"]`)}}
}

// listen starts a head for two agents. Its server answers each connection with a greeting.
func listen(t *testing.T) *Head {
	t.Helper()
	h, err := Listen(t.Context(), "127.0.0.1:0", HeadConfig{
		Key: key(t, "the secret"), Own: request("a"), Most: 2, Changed: func(int) {},
		Dial: func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.WriteString(theirs, "server") }()
			return ours, nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		h.Close(ended)
	})
	h.Start(Run{RunID: "r", ExecutionID: "e"})
	return h
}

func (h *Head) join(ctx context.Context, key []byte, r Request, waiting func(error)) (*Membership, error) {
	return Join(ctx, JoinConfig{Endpoint: h.listener.Addr().String(), Key: key, Request: r, Patience: time.Minute}, waiting)
}

func never(error) {}

func TestAgentsMeet(t *testing.T) {
	t.Parallel()
	h := listen(t)
	assert.Equal(t, "a", h.Host)
	right := key(t, "the secret")

	for name, c := range map[string]struct {
		key    []byte
		change func(*Request)
		want   string
	}{
		"another token":   {key(t, "another"), func(*Request) {}, "it has another token"},
		"another run":     {right, func(r *Request) { r.ID = "other" }, `--rdzv-id is "other" instead of "job"`},
		"another version": {right, func(r *Request) { r.Version = "2" }, "its clusterrun is 2, this one is 1"},
		"another script":  {right, func(r *Request) { r.Spec["command"] = json.RawMessage(`["test"]`) }, "the script and its arguments: test here, and at the endpoint train"},
		"another field":   {right, func(r *Request) { r.Spec["name"] = json.RawMessage(`"x"`) }, `name: "x" here, and at the endpoint none`},
		"other keys":      {right, func(r *Request) { r.Encoded = true }, "only one of the agents has --codec-keys"},
	} {
		r := request("b")
		c.change(&r)
		_, err := h.join(t.Context(), c.key, r, never)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, name)
		assert.Contains(t, refused.Reason, c.want, name)
	}

	r := request("a") // another agent on the same machine
	r.Spec["env"] = json.RawMessage(`{}`)
	second := must.Get(h.join(t.Context(), right, r, never))(t)
	assert.Equal(t, "a.2", second.Host)
	assert.Equal(t, "r", second.RunID)
	assert.Equal(t, "127.0.0.1", second.Address)

	// An excess agent waits until another leaves.
	ctx, leave := context.WithCancel(t.Context())
	third, err := h.join(t.Context(), right, request("c"), func(err error) {
		if ctx.Err() == nil {
			assert.ErrorContains(t, err, "the run already has all of its 2 agents")
			leave()
			assert.NoError(t, second.Lost(ctx))
		}
	})
	require.NoError(t, err)
	assert.Equal(t, "c", third.Host)

	// A broken connection is restored, with the same place.
	lost := make(chan error, 1)
	h.mu.Lock()
	h.members.all["c"].cut()
	h.mu.Unlock()
	again, end := context.WithCancel(t.Context())
	go func() { lost <- third.Lost(again) }()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.members.all) == 2
	}, time.Minute, time.Millisecond)
	end()
	require.NoError(t, <-lost)
}

// The head's exit is noticed immediately.
func TestTheHeadIsGone(t *testing.T) {
	t.Parallel()
	h := listen(t)
	m := must.Get(h.join(t.Context(), key(t, "the secret"), request("b"), never))(t)
	ended, end := context.WithCancel(t.Context())
	end()
	h.Close(ended)
	assert.Error(t, m.Lost(t.Context()))
}

// Idle connections are closed to make way for new ones, and each agent's connections are
// limited.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	h := listen(t)
	dial := func() net.Conn {
		conn := must.Get(net.Dial("tcp", h.listener.Addr().String()))(t)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first := dial()
	var last net.Conn
	for range handshakes + h.Most {
		last = dial()
	}
	_, err := first.Read(make([]byte, 1))
	require.Error(t, err)

	config := must.Get(tlsConfig(key(t, "the secret"), serverProtocol))(t)
	// served reports whether a connection is passed on to the server.
	served := func(raw net.Conn) bool {
		_, err := io.ReadFull(tls.Client(raw, config), make([]byte, 6))
		return err == nil
	}
	assert.True(t, served(last), "the last has not been waited for until its time was over")
	for range cap(h.open) - 1 {
		require.True(t, served(dial()))
	}
	assert.False(t, served(dial()))
	_ = last.Close()
	assert.Eventually(t, func() bool { return served(dial()) }, time.Minute, time.Millisecond)
}

// A run that has ended waits for its agents to leave, and admits no new ones. An agent that asks
// to join waits for the next run.
func TestTheRunHasEnded(t *testing.T) {
	t.Parallel()
	h := listen(t)
	right := key(t, "the secret")
	m := must.Get(h.join(t.Context(), right, request("b"), never))(t)
	closed := make(chan struct{})
	go func() {
		h.Close(context.Background())
		close(closed)
	}()
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	_, err := h.join(ctx, right, request("c"), func(err error) {
		if strings.Contains(err.Error(), "the run has ended") {
			enough()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	_ = m.conn.Close()
	<-closed
}

// A client that does not know the secret gets nothing from the server, with any certificate.
func TestStrangers(t *testing.T) {
	t.Parallel()
	h := listen(t)
	address := h.listener.Addr().String()
	connect := func(c *tls.Config) (string, error) {
		conn, err := tls.Dial("tcp", address, c)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		b := make([]byte, 6)
		_, err = io.ReadFull(conn, b)
		return string(b), err
	}
	right := must.Get(tlsConfig(key(t, "the secret"), serverProtocol))(t)
	word := must.Get(connect(right))(t)
	assert.Equal(t, "server", word)

	wrong := must.Get(tlsConfig(key(t, "another"), serverProtocol))(t)
	wrong.InsecureSkipVerify = true
	_, err := connect(wrong)
	assert.ErrorContains(t, err, "remote error: tls")
	_, err = connect(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{serverProtocol}, MinVersion: tls.VersionTLS13})
	assert.ErrorContains(t, err, "remote error: tls")

	// Something else at the endpoint.
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.WriteString(conn, "SSH-2.0-server\r\n")
		}
	}()
	_, err = Join(t.Context(), JoinConfig{Endpoint: l.Addr().String(), Key: key(t, "the secret"), Request: request("b")}, never)
	assert.ErrorContains(t, err, "another program, not an agent, listens at that address")
	_, err = Listen(t.Context(), l.Addr().String(), HeadConfig{Key: key(t, "the secret")})
	assert.ErrorIs(t, err, ErrTaken)
}

func TestRanks(t *testing.T) {
	t.Parallel()
	ranked := func(host string, rank int) Request {
		r := request(host)
		r.Rank = rank
		return r
	}
	m, name := newMembers(ranked("z", 0), 16)
	assert.Equal(t, "00-z", name)
	assert.Equal(t, "07-b", m.add(ranked("b", 7), &member{}))
	assert.Equal(t, Answer{Refusal: "--node-rank 7 is already used by host 07-b; use different ones", Taken: true}, m.check(ranked("c", 7)))
}

// An agent can return only to the run that it was in, and to its own place.
func TestAgain(t *testing.T) {
	t.Parallel()
	m, _ := newMembers(request("a"), 3)
	first := request("b")
	first.Agent, first.Rank = "first", 1
	again := first
	again.Host, again.ExecutionID = m.add(first, &member{}), "e"
	assert.Equal(t, "it belongs to another run", m.check(again).Refusal, "the run is not started")
	m.executionID = "later"
	assert.Equal(t, "it belongs to another run", m.check(again).Refusal)
	m.executionID = "e"
	assert.Equal(t, Answer{}, m.check(again))

	delete(m.all, again.Host)
	second := first
	second.Agent = "second"
	require.Equal(t, again.Host, m.add(second, &member{cut: func() { t.Error("the second was cut") }}))
	assert.Equal(t, "another agent has replaced this agent", m.check(again).Refusal)
	delete(m.all, again.Host)
	second.Host = "c"
	m.add(second, &member{})
	assert.Equal(t, "--node-rank 1 is already used by host 1-c; use different ones", m.check(again).Refusal)
}

// A host that restarts after a crash asks for its rank until its old connection is known to be
// dead.
func TestRankOfTheDead(t *testing.T) {
	t.Parallel()
	h := listen(t)
	right, r := key(t, "the secret"), request("b")
	r.Rank = 1
	dead := must.Get(h.join(t.Context(), right, r, never))(t)
	_, err := Join(t.Context(), JoinConfig{Endpoint: h.listener.Addr().String(), Key: right, Request: r}, never)
	require.ErrorContains(t, err, "--node-rank 1 is already used by host 1-b", "without patience")
	second, err := h.join(t.Context(), right, r, func(err error) {
		assert.ErrorContains(t, err, "--node-rank 1 is already used by host 1-b")
		_ = dead.conn.Close()
	})
	require.NoError(t, err)
	assert.Equal(t, "1-b", second.Host)
}

func TestSecret(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	_, err := Secret("", none)
	require.ErrorIs(t, err, ErrNoToken)
	_, err = Secret("", func(string) string { return "guess me" })
	assert.ErrorContains(t, err, "has 8 bytes; it needs 16")
	file := filepath.Join(t.TempDir(), "token")
	_, err = Secret(file, none)
	assert.ErrorContains(t, err, "no such file or directory; create a secret")
	require.NoError(t, os.WriteFile(file, []byte("sixteen bytes or more\n"), 0o644))
	_, err = Secret(file, none)
	assert.ErrorContains(t, err, "other users can read")
	require.NoError(t, os.Chmod(file, 0o600))
	secret := must.Get(Secret(file, none))(t)
	assert.Equal(t, "sixteen bytes or more", string(secret))
	assert.Equal(t, key(t, "one"), key(t, "one"), "the same secret makes the same")
	_, err = Key(nil)
	assert.ErrorContains(t, err, "the secret has 0 bytes; it needs 16")
}
