package supervisor

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
)

func runNamed(id string) runkey.Run {
	return runkey.Run{Namespace: "default", WorkflowID: id, RunID: "r"}
}

// leased reports whether anything on this machine holds a port.
func leased(t *testing.T, port int) bool {
	fd := must.Get(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(fd)
	err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@clusterrun-port-" + strconv.Itoa(port)})
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
	first := must.Get(lease("a", 0, 3))(t)
	require.Len(t, first, 3)
	low, high := ports.Range()
	for _, port := range first {
		require.True(t, low <= port && port < high, port)
		require.True(t, leased(t, port))
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		require.NoError(t, err, "a program can listen on it")
		require.NoError(t, l.Close())
	}
	again := must.Get(lease("a", 0, 3))(t)
	require.Equal(t, first, again)

	other := must.Get(lease("b", 0, 3))(t)
	for _, port := range other {
		require.NotContains(t, first, port)
	}
	_, err := lease("b", 0, 0, first[0])
	require.ErrorIs(t, err, ErrPortTaken)
	require.ErrorContains(t, err, "port "+strconv.Itoa(first[0])+" is taken")
	require.ErrorContains(t, err, "clusterrun")

	l := must.Get(net.Listen("tcp", ":0"))(t)
	defer l.Close()
	busy := l.Addr().(*net.TCPAddr).Port
	free := other[0] // b leased this port, so it may also request it by number
	_, err = lease("b", 1, 2, free, busy)
	require.ErrorIs(t, err, ErrPortTaken)
	require.ErrorContains(t, err, "port "+strconv.Itoa(busy)+" is taken: address already in use")
	require.False(t, leased(t, busy), "a failed request holds nothing")
	next := must.Get(lease("b", 1, 2, free))(t)
	require.NotContains(t, next, free)
	require.True(t, leased(t, free))
	require.False(t, leased(t, other[1]), "only the newest generation's are held")
	_, err = lease("b", 1, 0, 70000)
	require.ErrorIs(t, err, ErrInvalid)

	_, err = h.client.Release(h.ctx(), ReleaseRequest{Run: runNamed("a"), Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	for _, port := range first {
		require.False(t, leased(t, port))
	}
	h.kill9()
	require.False(t, leased(t, free), "the kernel frees them with the supervisor")
	h.awaitCount("swept", 1)
	h.start()
	again = must.Get(lease("b", 1, 2, free))(t)
	require.Equal(t, next, again, "the next supervisor leases the same again")
	require.True(t, leased(t, free))
}

func TestLeasesLapse(t *testing.T) {
	h := newHost(t, func(r *role) { r.PortsLapse = 100 * time.Millisecond })
	lease := func(id string) int {
		reply := must.Get(h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed(id), Count: 1}))(t)
		return reply.Ports[0]
	}
	lapsed, kept := lease("lapses"), lease("kept")
	r := h.request("worker-0", 0, "exec sleep 1000")
	r.Key.Run = runNamed("kept")
	h.launch(r)
	h.until("it lapses", func() bool { return !leased(t, lapsed) })
	require.True(t, leased(t, kept), "a run with processes keeps its ports")
	require.Equal(t, lapsed, lease("lapses"))
	h.until("it lapses again", func() bool { return !leased(t, lapsed) })
	// A late start leases its port again.
	r.Key.Run = runNamed("lapses")
	h.launch(r)
	require.True(t, leased(t, lapsed))
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

// Two tasks of a run may request one port of one machine under two of its names.
func TestAPortThatTwoTasksOfARunWantIsRefused(t *testing.T) {
	a, b := newHost(t, nil), newHost(t, nil)
	l := must.Get(net.Listen("tcp", ":0"))(t)
	require.NoError(t, l.Close())
	port := l.Addr().(*net.TCPAddr).Port
	lease := func(h *host, generation, group int, wanted ...int) error {
		_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Generation: generation, Group: group, Ports: wanted})
		return err
	}
	require.ErrorIs(t, lease(a, 0, 0, port, port), ErrPortTaken, "in one reservation")
	require.NoError(t, lease(a, 0, 0, port))
	require.NoError(t, lease(a, 0, 0, port), "again")
	require.ErrorContains(t, lease(a, 0, 1, port), "port "+strconv.Itoa(port)+" is taken by another of the run's tasks")
	require.ErrorIs(t, lease(b, 0, 1, port), ErrPortTaken, "of another host worker")
	require.NoError(t, lease(a, 1, 1, port), "of the next generation")
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
	reply := must.Get(h.client.Lease(h.ctx(), PortLeaseRequest{Run: runNamed("z"), Count: 3, Avoid: avoid}))(t)
	for _, port := range reply.Ports {
		require.Less(t, port, low+200)
	}
}

// contact returns a contact that expires after the given time.
func contact(after, grace time.Duration) Contact {
	return Contact{Until: BootNanos() + after.Nanoseconds(), Signal: sigTERM, Grace: grace}
}

func (h *host) startIn(c Contact, task, script string) Process {
	h.t.Helper()
	r := h.request(task, 0, script)
	r.Contact = c
	p := h.launch(r)
	return p
}

func (h *host) renew(task string, fence Fence, after time.Duration) error {
	return h.client.Renew(h.ctx(), RenewRequest{Key: keyOf(task), Fence: fence, Until: BootNanos() + after.Nanoseconds()})
}

// A process without a renewed contact is stopped in any state of the side, even without one.
func TestContactThatIsNotRenewed(t *testing.T) {
	h := newHost(t, nil)
	h.startIn(contact(300*time.Millisecond, long), "polite", "exec sleep 1000")
	h.startIn(contact(300*time.Millisecond, 100*time.Millisecond), "deaf", "trap '' TERM; while :; do sleep 0.01; done")
	h.startIn(Contact{}, "free", "exec sleep 1000")
	kept := h.startIn(contact(400*time.Millisecond, long), "kept", "exec sleep 1000")
	require.NoError(t, h.renew("kept", Fence{Attempt: 1}, time.Hour))
	require.NoError(t, h.renew("kept", Fence{Attempt: 1}, time.Millisecond), "it is never made shorter")

	e := h.wait("polite", 0)
	require.Equal(t, ReasonCutOff, e.Reason)
	require.Equal(t, -sigTERM, e.Code)
	e = h.wait("deaf", 0)
	require.Equal(t, ReasonCutOff, e.Reason)
	require.Equal(t, -sigKILL, e.Code)
	require.False(t, gone(kept.PID))
	require.ElementsMatch(t, []string{"free", "kept"}, h.stop(sigKILL, 0))
}

// An old commander, such as one that the server gave up while it was frozen, cannot extend a
// contact, and an outdated answer cannot start a process.
func TestContactOfAnOldCommander(t *testing.T) {
	h := newHost(t, nil)
	r := h.request("late", 0, "exec sleep 1000")
	r.Contact = Contact{Until: BootNanos() - 1, Signal: sigTERM}
	_, err := h.client.Start(h.ctx(), r)
	require.ErrorIs(t, err, ErrCutOff)
	all := must.Get(h.client.Processes(h.ctx(), testRun))(t)
	require.Empty(t, all.Processes)

	h.startIn(contact(500*time.Millisecond, long), "worker-0", "exec sleep 1000")
	_, err = h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: 2}})
	require.NoError(t, err)
	require.ErrorIs(t, h.renew("worker-0", Fence{Attempt: 1}, time.Hour), ErrFenced)
	require.Equal(t, ReasonCutOff, h.wait("worker-0", 0).Reason)
	require.NoError(t, h.renew("worker-0", Fence{Attempt: 2}, time.Hour), "there is nothing left to renew")
	require.NoError(t, h.renew("worker-7", Fence{Attempt: 1}, time.Hour))
}

// After a machine was suspended, overdue processes do not get a grace.
func TestNext(t *testing.T) {
	c := Contact{Until: 100, Grace: 50}
	for _, k := range []struct {
		name string
		p    process
		want int64
	}{
		{"free", process{}, 0},
		{"max_run_time", process{killAt: 7}, 7},
		{"in contact", process{contact: c}, 100},
		{"in contact, max_run_time first", process{contact: c, killAt: 7}, 7},
		{"in contact, max_run_time later", process{contact: c, killAt: 700}, 100},
		{"cut off", process{contact: c, cutOff: true}, 150},
		{"cut off, max_run_time first", process{contact: c, cutOff: true, killAt: 120}, 120},
		{"killed", process{contact: c, cutOff: true, killAt: 7, killed: time.Now()}, 0},
	} {
		assert.Equal(t, k.want, k.p.next(), k.name)
	}
	assert.True(t, c.over(100))
	assert.False(t, c.over(99))
	assert.False(t, Contact{}.over(1))
}

// After catchUp, the owner's request has been carried out, whichever goroutine read it. Otherwise
// the run's stop, which the owner requests next, could overtake it and send another signal.
func TestCatchingUpWithTheOwner(t *testing.T) {
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	defer theirs.Close()
	var last atomic.Int64
	l := must.Get(watchLifeline(theirs, func(a StopAll) { last.Store(int64(a.Grace)) }, slog.New(slog.DiscardHandler)))(t)
	defer l.stop()
	for i := range time.Duration(2000) {
		line := must.Get(json.Marshal(StopAll{Stops: Stops{Stop: Stop{Signal: sigTERM, Grace: i}}, Later: true}))(t)
		half := len(line) / 2
		_, err := ours.Write(line[:half])
		require.NoError(t, err)
		_, err = ours.Write(append(line[half:], '\n'))
		require.NoError(t, err)
		l.catchUp()
		require.EqualValues(t, i, last.Load())
	}
	gone, told := l.news()
	_, err = ours.WriteString("nonsense\n{\"signal\": 2}\n{\"signal\": 3}\n")
	require.NoError(t, err)
	require.NoError(t, ours.Close())
	<-gone
	require.Equal(t, StopAll{Stops: Stops{Stop: Stop{Signal: 2}}}, <-told, "the first counts")
	l.catchUp()
}

func TestNoOwnerToCatchUpWith(t *testing.T) {
	l := must.Get(watchLifeline(nil, nil, nil))(t)
	l.catchUp()
	gone, told := l.news()
	require.Nil(t, gone)
	require.Nil(t, told)
	l.stop()
}
