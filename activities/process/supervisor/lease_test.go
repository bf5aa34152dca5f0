package supervisor

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

func runNamed(id string) runkey.Run {
	return runkey.Run{Namespace: "default", WorkflowID: id, RunID: "r"}
}

// leased reports whether anybody on this machine holds a port.
func leased(t *testing.T, port int) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@clusterrun-port-" + strconv.Itoa(port)})
	if err != nil {
		require.ErrorIs(t, err, unix.EADDRINUSE)
		return true
	}
	return false
}

func TestLease(t *testing.T) {
	h := newHost(t, nil)
	lease := func(id string, generation, count int, fixed ...int) ([]int, error) {
		reply, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed(id), Generation: generation, Count: count, Ports: fixed})
		return reply.Ports, err
	}
	first, err := lease("a", 0, 3)
	require.NoError(t, err)
	require.Len(t, first, 3)
	low, high := ports.Range()
	for _, port := range first {
		require.True(t, low <= port && port < high, port)
		require.True(t, leased(t, port))
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		require.NoError(t, err, "a program can listen on it")
		require.NoError(t, l.Close())
	}
	again, err := lease("a", 0, 3)
	require.NoError(t, err)
	require.Equal(t, first, again)

	other, err := lease("b", 0, 3)
	require.NoError(t, err)
	for _, port := range other {
		require.NotContains(t, first, port)
	}
	_, err = lease("b", 0, 0, first[0])
	require.ErrorIs(t, err, ErrPortTaken)
	require.ErrorContains(t, err, "port "+strconv.Itoa(first[0])+" is taken")
	require.ErrorContains(t, err, "clusterrun")

	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	busy := l.Addr().(*net.TCPAddr).Port
	free := other[0] // b has leased this port itself, so it may also request it by number
	_, err = lease("b", 1, 2, free, busy)
	require.ErrorIs(t, err, ErrPortTaken)
	require.ErrorContains(t, err, "port "+strconv.Itoa(busy)+" is taken: address already in use")
	require.False(t, leased(t, busy), "a failed request holds nothing")
	next, err := lease("b", 1, 2, free)
	require.NoError(t, err)
	require.NotContains(t, next, free)
	require.True(t, leased(t, free))
	require.False(t, leased(t, other[1]), "only the newest generation's are held")
	_, err = lease("b", 1, 0, 70000)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = lease("c", 0, 13000)
	require.ErrorIs(t, err, ErrPortTaken)

	_, err = h.client.Release(h.ctx(), ReleaseRequest{Run: runNamed("a"), Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	for _, port := range first {
		require.False(t, leased(t, port))
	}
	h.kill9()
	require.False(t, leased(t, free), "the kernel frees them with the supervisor")
	h.awaitCount("swept", 1)
	h.start()
	again, err = lease("b", 1, 2, free)
	require.NoError(t, err)
	require.Equal(t, next, again, "the next supervisor leases the same again")
	require.True(t, leased(t, free))
}

func TestLeasesLapse(t *testing.T) {
	h := newHost(t, func(r *role) { r.PortsLapse = 100 * time.Millisecond })
	lease := func(id string) int {
		reply, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed(id), Count: 1})
		require.NoError(t, err)
		return reply.Ports[0]
	}
	lapsed, kept := lease("lapses"), lease("kept")
	r := h.request("worker-0", 0, "exec sleep 1000")
	r.Key.Run = runNamed("kept")
	_, err := h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	h.until("it lapses", func() bool { return !leased(t, lapsed) })
	require.True(t, leased(t, kept), "a run with processes keeps its ports")
	require.Equal(t, lapsed, lease("lapses"))
	h.until("it lapses again", func() bool { return !leased(t, lapsed) })
	// A start that comes too late leases its port again.
	r.Key.Run = runNamed("lapses")
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.True(t, leased(t, lapsed))
}

// A store is served while its port is leased, and each generation has its own store.
func TestStoresOfLeases(t *testing.T) {
	h := newHost(t, func(r *role) { r.PortsLapse = 100 * time.Millisecond })
	lease := func(generation int, store string, fixed ...int) (int, error) {
		reply, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed("s"), Generation: generation, Count: 1, Ports: fixed, Store: store})
		return append(reply.Ports, 0)[0], err
	}
	dial := func(port int) (net.Conn, error) { return net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port)) }
	// count adds 1 to a number in the store.
	count := func(port int) byte {
		c, err := dial(port)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte("\x03\x01\x00\x00\x00\x00\x00\x00\x00n\x01\x00\x00\x00\x00\x00\x00\x00"))
		require.NoError(t, err)
		answer := make([]byte, 8)
		_, err = io.ReadFull(c, answer)
		require.NoError(t, err)
		return answer[0]
	}
	refused := func(port int) bool {
		c, err := dial(port)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, unix.ECONNREFUSED)
	}
	port, err := lease(0, "127.0.0.1:0")
	require.NoError(t, err)
	h.until("the lease lapses, and the store with it", func() bool { return refused(port) })
	r := h.request("worker-0", 0, "exec sleep 1000")
	r.Key.Run = runNamed("s")
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.Equal(t, byte(1), count(port), "a start takes both back")
	again, err := lease(0, "127.0.0.1:0")
	require.NoError(t, err)
	require.Equal(t, port, again)
	require.Equal(t, byte(2), count(port), "the same lease has the same store")

	_, err = h.client.Stop(h.ctx(), StopRequest{Run: runNamed("s"), Signal: int(unix.SIGKILL)})
	require.NoError(t, err)
	h.until("it has ended", func() bool {
		_, err = lease(1, "127.0.0.1:"+strconv.Itoa(port), port)
		return err == nil && count(port) == 1
	})
	_, err = lease(1, "nonsense")
	require.ErrorIs(t, err, ErrInvalid)
	h.until("its process has ended, and the store of the earlier generation is gone", func() bool {
		next, err := lease(2, "127.0.0.1:0")
		require.NoError(t, err)
		return next == port || refused(port)
	})

	port, err = lease(3, "127.0.0.1:0")
	require.NoError(t, err)
	r.Key.Generation = 3
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.Equal(t, byte(1), count(port))
	h.kill9()
	h.until("it has ended with the supervisor", func() bool { return refused(port) })
	h.awaitCount("swept", 1)
	h.start()
	r.Number = 1
	r.Fence.Launch = 1
	_, err = h.client.Start(h.ctx(), r)
	require.NoError(t, err)
	require.Equal(t, byte(1), count(port), "the next supervisor serves it for the next process")
	_, err = h.client.Release(h.ctx(), ReleaseRequest{Run: runNamed("s"), Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	// A guard that is just being started has a copy of the socket until it is executed.
	h.until("the store is closed", func() bool { return refused(port) })
}

func TestSupervisorsLeaseDifferentPorts(t *testing.T) {
	hosts := []*host{newHost(t, nil), newHost(t, nil)}
	var mu sync.Mutex
	seen := make(map[int]string)
	var wg sync.WaitGroup
	for i, h := range hosts {
		for j := range 8 {
			wg.Go(func() {
				id := strconv.Itoa(j)
				reply, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed(id), Count: 25})
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for _, port := range reply.Ports {
					assert.Empty(t, seen[port], port)
					seen[port] = strconv.Itoa(i) + "/" + id
				}
			})
		}
	}
	wg.Wait()
	require.Len(t, seen, 2*8*25)
}

// Two tasks of a run that were pinned to one port of one machine, under two of its names,
// used to wait for each other until the placement timed out.
func TestAPortThatTwoTasksOfARunWantIsRefusedForGood(t *testing.T) {
	a, b := newHost(t, nil), newHost(t, nil)
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	port := l.Addr().(*net.TCPAddr).Port
	lease := func(h *host, run string, generation, group int, task string) error {
		_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed(run), Generation: generation, Group: group, Ports: []int{port}, Tasks: []string{task}})
		return err
	}
	_, err = a.client.Lease(a.ctx(), PortLeaseRequest{Run: runNamed("w"), Ports: []int{port, port}, Tasks: []string{"worker-0", "ps-0"}})
	require.ErrorIs(t, err, ErrPortShared, "in one reservation")
	require.NoError(t, lease(a, "x", 0, 0, "worker-0"))
	require.NoError(t, lease(a, "x", 0, 0, "worker-0"), "again")
	want := "worker-0 and ps-0 are both pinned to port " + strconv.Itoa(port) + " of this machine"
	err = lease(a, "x", 0, 1, "ps-0")
	require.ErrorIs(t, err, ErrPortShared)
	require.EqualError(t, err, want)
	err = lease(b, "x", 0, 1, "ps-0")
	require.ErrorIs(t, err, ErrPortShared, "of another host worker")
	require.EqualError(t, err, want)

	require.ErrorIs(t, lease(b, "x", 0, 0, "worker-0"), ErrPortTaken, "an earlier try for the same task lapses")
	require.ErrorIs(t, lease(b, "x", 1, 1, "ps-0"), ErrPortTaken, "as does an earlier generation")
	require.ErrorIs(t, lease(b, "y", 0, 0, "ps-0"), ErrPortTaken, "another run may end")
	require.NoError(t, lease(a, "x", 1, 1, "ps-0"))
	require.ErrorIs(t, lease(b, "x", 1, 0, "worker-0"), ErrPortShared)
}

// A port that the kernel chose for one task must not be one that another task requests by
// number.
func TestPortsThatTasksWantByNumberAreLeftAlone(t *testing.T) {
	h := newHost(t, nil)
	low, high := ports.Range()
	var avoid []int
	for port := low + 200; port < high; port++ {
		avoid = append(avoid, port)
	}
	reply, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed("z"), Count: 3, Avoid: avoid})
	require.NoError(t, err)
	for _, port := range reply.Ports {
		require.Less(t, port, low+200)
	}
}
