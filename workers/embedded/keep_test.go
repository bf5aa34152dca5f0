package embedded

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// keep keeps the home's server running until the test ends.
func keep(t *testing.T, h Home, tell func(error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { h.Keep(ctx, tell) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// awaitOther waits for a server that is not known.
func awaitOther(t *testing.T, h Home, known map[int]bool) *Instance {
	t.Helper()
	var s *Instance
	require.Eventually(t, func() bool {
		var err error
		s, err = h.Find(t.Context())
		return err == nil && s != nil && !known[s.PID]
	}, 20*time.Second, time.Millisecond)
	known[s.PID] = true
	return s
}

// A killed server is restarted each time, and at the same port.
func TestAServerIsKept(t *testing.T) {
	h := newHome(t)
	first := must.Get(h.Ensure(t.Context(), ""))(t)
	keep(t, h, func(err error) { assert.NoError(t, err) })
	keep(t, h, func(err error) { assert.NoError(t, err) }) // by two commands at a time
	known := map[int]bool{first.PID: true}
	for range 3 {
		kill(t, h)
		assert.Equal(t, first.Address, awaitOther(t, h, known).Address)
	}
}

func TestAServerThatCannotBeKept(t *testing.T) {
	h := newHome(t)
	_, err := h.Ensure(t.Context(), "")
	require.NoError(t, err)
	broken(t, h)
	told := make(chan error, 100)
	keep(t, h, func(err error) { told <- err })
	kill(t, h)
	require.ErrorContains(t, <-told, "of another version")
	require.Eventually(t, func() bool {
		log, _ := os.ReadFile(h.Log())
		return bytes.Count(log, []byte("of another version")) >= 3*startAttempts
	}, 20*time.Second, time.Millisecond)
	assert.Empty(t, told, "it is told once")
}

// A connection goes to the server's current address, and nowhere without a server.
func TestDialFollowsTheServer(t *testing.T) {
	h := newHome(t)
	first := must.Get(h.Ensure(t.Context(), ""))(t)
	dialed := func() string {
		c := must.Get(h.Dial(t.Context()))(t)
		defer c.Close()
		return c.RemoteAddr().String()
	}
	assert.Equal(t, first.Address, dialed())

	kill(t, h)
	stranger := must.Get(net.Listen("tcp", first.Address))(t)
	defer stranger.Close()
	_, err := h.Dial(t.Context())
	require.EqualError(t, err, "the embedded server is not running")

	second := must.Get(h.Ensure(t.Context(), ""))(t)
	assert.NotEqual(t, first.Address, second.Address, "a stranger has its port")
	assert.Equal(t, second.Address, dialed())
}

// If the process that held the start lock was killed, the server that it was starting is used when
// it is ready.
func TestAStarterIsKilledBeforeItsServerIsReady(t *testing.T) {
	h := newHome(t)
	starting := must.Get(h.lockForStart(t.Context()))(t)
	cmd := must.Get(h.command("--port", "0"))(t)
	require.NoError(t, cmd.Start())
	starting.Close()
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	require.NotNil(t, s)
	again := must.Get(h.Find(t.Context()))(t)
	assert.Equal(t, s, again)
	kill(t, h)
	_ = cmd.Wait()
}

func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lives := []time.Duration{0, 0, 0, 0, time.Hour, 0, 0}
		for range 20 {
			lives = append(lives, 0)
		}
		var waits []string
		ended := time.Now()
		Again(ctx, func() error {
			waits = append(waits, time.Since(ended).String())
			time.Sleep(lives[0])
			if lives = lives[1:]; len(lives) == 0 {
				cancel()
			}
			ended = time.Now()
			return nil
		}, func(err error) { assert.NoError(t, err) })
		assert.Equal(t, "0s 0s 100ms 200ms 400ms 0s 100ms 200ms", strings.Join(waits[:8], " "))
		assert.Equal(t, "10s", waits[len(waits)-1])
	})
}
