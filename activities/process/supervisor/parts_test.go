package supervisor

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestCookies(t *testing.T) {
	env := withCookie([]string{"A=1", CookieVar + "=old", "B=2"}, "inst/h/0/w/0", "outer/h/0/w/0")
	require.Equal(t, []string{"A=1", "B=2", CookieVar + "=inst/h/0/w/0 outer/h/0/w/0"}, env)
	cookies := strings.Fields(strings.TrimPrefix(env[2], CookieVar+"="))
	require.Equal(t, "inst/h/0/w/0", ofInstance(cookies, "inst"))
	require.Equal(t, "outer/h/0/w/0", ofInstance(cookies, "outer"))
	require.Empty(t, ofInstance(cookies, "ins"))
	require.NotEqual(t, runHash(runkey.Run{Namespace: "a", WorkflowID: "bc", RunID: "d"}), runHash(runkey.Run{Namespace: "ab", WorkflowID: "c", RunID: "d"}))
}

func TestLastOfEach(t *testing.T) {
	require.Equal(t, []string{"B=2", "A=3", "C"}, lastOfEach([]string{"A=1", "B=2", "A=3", "C"}))
}

func TestErrorsOnTheWire(t *testing.T) {
	for _, kind := range sentinels {
		err := failureOf(fault.Refuse(kind, "why")).err()
		require.ErrorIs(t, err, kind)
		require.Equal(t, "why", err.Error())
	}
	err := failureOf(errors.New("plain")).err()
	require.Equal(t, "plain", err.Error())
	require.NoError(t, (*failure)(nil).err())
}

// A pointer to a zero fence differs from nil.
func TestFencesOnTheWire(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, gob.NewEncoder(&buf).Encode(StopRequest{Fence: &Fence{}}))
	var got StopRequest
	require.NoError(t, gob.NewDecoder(&buf).Decode(&got))
	require.Equal(t, &Fence{}, got.Fence)
}

func TestBootTimer(t *testing.T) {
	fired := make(chan int64, 10)
	timer := must.Get(newBootTimer(func() { fired <- BootNanos() }))(t)
	defer timer.close()
	at := BootNanos() + int64(20*time.Millisecond)
	require.NoError(t, timer.set(BootNanos()+int64(time.Hour)))
	require.NoError(t, timer.set(at))
	require.GreaterOrEqual(t, <-fired, at)
	require.NoError(t, timer.set(-5))
	<-fired
}

// fakeAPI waits until its context is canceled.
type fakeAPI struct {
	API
	waiting, ended chan struct{}
}

func (f *fakeAPI) Wait(ctx context.Context, _ ProcessRef) (Process, error) {
	f.waiting <- struct{}{}
	<-ctx.Done()
	f.ended <- struct{}{}
	return Process{}, ctx.Err()
}

func (f *fakeAPI) Grant(context.Context, GrantRequest) error { return fault.Refuse(ErrFenced, "no") }

func pair(t *testing.T) (net.Conn, net.Conn) {
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	var conns [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		conns[i] = must.Get(net.FileConn(f))(t)
		require.NoError(t, f.Close())
	}
	return conns[0], conns[1]
}

func TestClientGivesUpAndLoses(t *testing.T) {
	server, conn := pair(t)
	api := &fakeAPI{waiting: make(chan struct{}), ended: make(chan struct{})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(server, api)
	}()
	c := NewClient(conn)
	require.ErrorIs(t, c.Grant(context.Background(), GrantRequest{}), ErrFenced, "calls do not wait for each other")

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := c.Wait(ctx, ProcessRef{})
		require.ErrorIs(t, err, context.Canceled)
	})
	<-api.waiting
	cancel()
	wg.Wait()
	<-api.ended // the supervisor stops waiting when the caller gives up
	_, err := c.Wait(ctx, ProcessRef{})
	require.ErrorIs(t, err, context.Canceled)

	wg.Go(func() {
		_, err := c.Wait(context.Background(), ProcessRef{})
		require.ErrorIs(t, err, ErrLost)
	})
	<-api.waiting
	require.NoError(t, server.(*net.UnixConn).CloseWrite())
	<-c.Lost()
	wg.Wait()
	require.ErrorIs(t, c.Grant(context.Background(), GrantRequest{}), ErrLost)
	require.NoError(t, c.Close())
	<-api.ended // it also stops when the side is gone
	<-served
}

// An immediately canceled call returns in either order of the two requests.
func TestGiveUpDoesNotOvertakeItsCall(t *testing.T) {
	server, conn := pair(t)
	const calls = 2000
	api := &fakeAPI{waiting: make(chan struct{}, calls), ended: make(chan struct{}, calls)}
	go serve(server, api)
	c := NewClient(conn)
	defer c.Close()
	for id := uint64(1); id <= calls; id++ {
		require.NoError(t, c.out.send(request{id, "Wait"}, ProcessRef{}))
		require.NoError(t, c.out.send(request{ID: id}))
	}
	for range calls {
		select {
		case <-api.ended:
		case <-time.After(patience):
			require.FailNow(t, "a call that was given up goes on waiting")
		}
	}
}
