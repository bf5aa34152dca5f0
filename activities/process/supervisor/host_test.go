package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
)

// patience limits the wait for immediate effects on a busy machine.
const patience = 30 * time.Second

// host is a supervisor in a separate process, with what a test needs to control it.
type host struct {
	t    *testing.T
	role role
	// dir is for the test's own files.
	dir      string
	instance string
	cmd      *exec.Cmd
	exited   chan error
	lifeline *os.File
	client   *Client
}

var hostNumber atomic.Int64

func newHost(t *testing.T, change func(*role)) *host {
	t.Helper()
	dir := t.TempDir()
	h := &host{t: t, dir: dir}
	h.role = role{
		Dir:    filepath.Join(dir, fmt.Sprintf("%d-%d", os.Getpid(), hostNumber.Add(1)), "state"),
		Events: filepath.Join(dir, "events"),
	}
	if change != nil {
		change(&h.role)
	}
	t.Cleanup(h.cleanup)
	h.start()
	return h
}

// start starts or restarts a supervisor on the host's state directory.
func (h *host) start() {
	h.t.Helper()
	sides := h.count("side ")
	text := must.Get(json.Marshal(h.role))(h.t)
	h.cmd = exec.Command("/proc/self/exe", "-test.run=^$")
	if h.role.Files != "" {
		exe := must.Get(os.Executable())(h.t)
		h.cmd = exec.Command("/bin/sh", "-c", "ulimit "+h.role.Files+` && exec "$0" -test.run='^$'`, exe)
	}
	// Otherwise every process of a test with -race takes a second to exit.
	h.cmd.Env = append(os.Environ(), roleVar+"="+string(text), "GORACE=atexit_sleep_ms=0 halt_on_error=1 exitcode=66")
	log := must.Get(os.OpenFile(filepath.Join(h.dir, "supervisor.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(h.t)
	defer log.Close()
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if h.role.Lifeline {
		r, w, err := os.Pipe()
		require.NoError(h.t, err)
		h.cmd.ExtraFiles = []*os.File{r}
		h.lifeline = w
		defer r.Close()
	}
	var side net.Conn
	if h.role.OwnersSide {
		ours, theirs, err := SocketPair()
		require.NoError(h.t, err)
		h.cmd.ExtraFiles = append(h.cmd.ExtraFiles, theirs)
		side = ours
		defer theirs.Close()
	}
	require.NoError(h.t, h.cmd.Start())
	exited := make(chan error, 1)
	go func(cmd *exec.Cmd) { exited <- cmd.Wait() }(h.cmd)
	h.exited = exited
	if side != nil {
		h.instance = h.role.Instance
		h.client = NewOwnersClient(side, h.cmd.Process.Pid, h.role.Dir, h.instance)
		return
	}
	h.awaitCount("side ", sides+1)
	h.connect()
	h.instance = strings.TrimSpace(must.Read(h.t, h.role.Dir, instanceFile))
}

func (h *host) connect() {
	h.t.Helper()
	if h.client != nil {
		_ = h.client.Close()
	}
	h.until("the side answers", func() bool {
		conn, err := net.Dial("unix", sideSocket(h.role.Dir))
		if err != nil {
			return false
		}
		h.client = NewClient(conn)
		return true
	})
}

func (h *host) cleanup() {
	if h.client != nil {
		_ = h.client.Close()
	}
	_ = os.Remove(sideSocket(h.role.Dir))
	if h.role.Unkillable != "" {
		_ = os.Remove(h.role.Unkillable)
	}
	if h.cmd != nil && h.cmd.Process != nil {
		_ = h.cmd.Process.Signal(unix.SIGTERM)
		_ = h.cmd.Process.Signal(unix.SIGINT) // at once
		select {
		case <-h.exited:
		case <-time.After(patience):
			_ = h.cmd.Process.Kill()
			h.t.Errorf("the supervisor does not end")
		}
	}
	// A side may briefly outlive its supervisor, and note an event in the directory.
	h.until("the sides have ended", func() bool { return len(h.sides()) == 0 })
	if left := h.cookied(); len(left) > 0 {
		h.t.Errorf("processes are left: %v", left)
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if h.t.Failed() {
		for _, name := range []string{"supervisor.log", "events"} {
			raw, _ := os.ReadFile(filepath.Join(h.dir, name))
			h.t.Logf("%s:\n%s", name, raw)
		}
	}
}

// ended waits for the supervisor itself to exit.
func (h *host) ended() error {
	h.t.Helper()
	select {
	case err := <-h.exited:
		h.exited <- err
		return err
	case <-time.After(patience):
		require.FailNow(h.t, "the supervisor does not end")
		return nil
	}
}

// cookied lists the living processes with the host's cookies.
func (h *host) cookied() []int {
	return h.find(func(cookie string) bool { return cookie != sideCookie(h.instance) })
}

// sides lists the host's living sides, and what they started for themselves.
func (h *host) sides() []int {
	return h.find(func(cookie string) bool { return cookie == sideCookie(h.instance) })
}

// find lists the living processes with the host's wanted cookies.
func (h *host) find(wanted func(cookie string) bool) []int {
	pids := must.Get(proc.PIDs())(h.t)
	var found []int
	for _, pid := range pids {
		c := ofInstance(readCookies(pid), h.instance)
		if h.instance == "" || c == "" || !wanted(c) {
			continue
		}
		if stat, err := proc.ReadStat(pid); err == nil && !stat.Dead() {
			found = append(found, pid)
		}
	}
	return found
}

func (h *host) until(what string, done func() bool) {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for asked := time.Now(); !done(); asked = time.Now() {
		if time.Now().After(deadline) {
			require.FailNow(h.t, "waited in vain until "+what)
		}
		// Conditions that read all of /proc use at most a quarter of a processor.
		time.Sleep(min(max(2*time.Millisecond, 3*time.Since(asked)), 200*time.Millisecond))
	}
}

func (h *host) events() []string {
	raw, _ := os.ReadFile(h.role.Events)
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func (h *host) count(prefix string) int {
	n := 0
	for _, e := range h.events() {
		if strings.HasPrefix(e, prefix) {
			n++
		}
	}
	return n
}

func (h *host) awaitCount(prefix string, n int) {
	h.t.Helper()
	h.until("there is an event "+prefix, func() bool { return h.count(prefix) >= n })
}

// lastEvent waits for an event with the prefix from another process, and returns what follows the
// prefix in the last one.
func (h *host) lastEvent(prefix string) string {
	h.t.Helper()
	h.awaitCount(prefix, 1)
	last := ""
	for _, e := range h.events() {
		if rest, ok := strings.CutPrefix(e, prefix); ok {
			last = rest
		}
	}
	return last
}

func (h *host) sidePID() int {
	pid := must.Get(strconv.Atoi(h.lastEvent("side ")))(h.t)
	return pid
}

// file is a path in the test's directory.
func (h *host) file(name string) string { return filepath.Join(h.dir, name) }

// pidIn waits for a program to write its pid.
func (h *host) pidIn(name string) int {
	h.t.Helper()
	pid := 0
	h.until(name+" has a pid", func() bool {
		raw, err := os.ReadFile(h.file(name))
		if err != nil || !strings.HasSuffix(string(raw), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
		return err == nil
	})
	return pid
}

func (h *host) exists(name string) bool {
	_, err := os.Stat(h.file(name))
	return err == nil
}

func gone(pid int) bool {
	stat, err := proc.ReadStat(pid)
	return err != nil || stat.Dead()
}

var testRun = runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "r1"}

func keyOf(task string) runkey.Task { return runkey.Task{Run: testRun, Task: task} }

func ref(task string, number int) ProcessRef { return ProcessRef{Key: keyOf(task), Number: number} }

func (h *host) command(name, script string) Command {
	return Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script},
		Env:    []string{"PATH=/usr/bin:/bin", "D=" + h.dir},
		Dir:    h.dir,
		LogDir: h.file("logs/" + name), Stdout: h.file("logs/" + name + "/stdout.log"), Stderr: h.file("logs/" + name + "/stderr.log"),
	}
}

func ctxFor(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (h *host) ctx() context.Context { return ctxFor(h.t) }

func (h *host) request(task string, number int, script string) StartRequest {
	return StartRequest{
		Key: keyOf(task), Fence: Fence{Attempt: 1}, Number: number,
		Command: h.command(task+"-"+strconv.Itoa(number), script),
	}
}

// launch starts a process, which must succeed.
func (h *host) launch(r StartRequest) Process {
	h.t.Helper()
	return must.Get(h.client.Start(h.ctx(), r))(h.t)
}

// sh is launch for a script.
func (h *host) sh(task string, number int, script string) Process {
	h.t.Helper()
	p := h.launch(h.request(task, number, script))
	require.Equal(h.t, number, p.Number)
	if p.Exit == nil {
		require.NotZero(h.t, p.PID)
	}
	return p
}

// wait waits for a process's end.
func (h *host) wait(task string, number int) Exit {
	h.t.Helper()
	p := must.Get(h.client.Wait(h.ctx(), ref(task, number)))(h.t)
	require.NotNil(h.t, p.Exit)
	return *p.Exit
}

func (h *host) stop(signal int, grace time.Duration, tasks ...string) []string {
	h.t.Helper()
	reply := must.Get(h.client.Stop(h.ctx(), StopRequest{Run: testRun, Tasks: tasks, Signal: signal, Grace: grace, Reason: ReasonTerminate}))(h.t)
	return reply.Tasks
}

const (
	sigTERM = int(unix.SIGTERM)
	sigKILL = int(unix.SIGKILL)
	// long is a grace that no test waits for.
	long = 10 * time.Minute
)

// The advice to kill a supervisor mentions that its tasks die with it. If the holder is unknown,
// the advice does not name process 0, which means the whole process group.
func TestWhoeverHoldsAStateDirectoryIsNamedWithItsTasks(t *testing.T) {
	dir := t.TempDir()
	lock := must.Get(tryLock(dir, roleSupervisor))(t)
	defer lock.Close()
	_, err := waitLock(dir)
	require.EqualError(t, err, fmt.Sprintf("the state directory %s is in use by the host worker with pid %d; "+
		"choose another state directory, or kill that host worker with all its tasks: kill %d", dir, os.Getpid(), os.Getpid()))
	require.NoError(t, lock.Truncate(0))
	_, err = waitLock(dir)
	require.ErrorContains(t, err, "in use by another process")
	assert.NotContains(t, err.Error(), "kill")
	assert.NotContains(t, inUse(dir, 7, roleSweep).Error(), "kill")
}

// An error at the open file limit names the limit, and a request that exceeds the limit is refused.
func TestLimitOfOpenFilesIsNamed(t *testing.T) {
	const named = "a process may have 40 open files on this host; raise the limit: ulimit -n"
	h := newHost(t, func(r *role) { r.Files = "-n 40" })
	lease := func(group, count int) error {
		_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Group: group, Count: count})
		return err
	}
	err := lease(0, 25)
	require.ErrorIs(t, err, ErrLimit)
	require.ErrorContains(t, err, named)

	_, err = h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 3, Tasks: 3, Files: FilesFor(3, true)})
	require.ErrorIs(t, err, ErrLimit)
	require.EqualError(t, err, "33 open files are needed in addition to about 16 ("+named+")")

	require.NoError(t, lease(0, 20))
	err = lease(1, 20)
	require.ErrorContains(t, err, named, "and not that so many ports are not free")
	require.NotErrorIs(t, err, ErrLimit, "without the others, it could be had")
	group := 2
	for ; err != nil || lease(group, 1) == nil; group++ {
		err = nil
	}
	require.Greater(t, group, 3, "the ports of the lease that failed are free again")

	p, err := h.client.Start(h.ctx(), h.request("starved", 0, "exit 0"))
	if err != nil {
		require.ErrorIs(t, err, ErrJournal)
		require.ErrorContains(t, err, named)
		return
	}
	require.NotNil(t, p.Exit)
	require.Contains(t, p.Exit.StartError, named)
}

// The supervisor raises its open file limit to the hard limit. Its tasks get its owner's limit.
func TestSoftLimitIsRaisedAndNotLeaked(t *testing.T) {
	h := newHost(t, func(r *role) { r.Files = "-Sn 40" })
	_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 60})
	require.NoError(t, err)
	h.sh("asks", 0, "ulimit -Sn >$D/limit")
	require.Zero(t, h.wait("asks", 0).Code)
	require.Equal(t, "40", strings.TrimSpace(must.Read(t, h.file("limit"))))
}
