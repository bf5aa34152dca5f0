package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/must"
)

// kill9 kills the supervisor like the kernel when out of memory.
func (h *host) kill9() {
	h.t.Helper()
	require.NoError(h.t, h.cmd.Process.Kill())
	_ = h.ended()
}

func TestSideIsRestarted(t *testing.T) {
	h := newHost(t, nil)
	p := h.sh("stays", 0, "echo $$ >$D/up; while [ ! -e $D/go ]; do sleep 0.01; done; exit 9")
	h.pidIn("up")
	for i := range 3 {
		side := h.sidePID()
		require.NoError(t, unix.Kill(side, unix.SIGKILL))
		if i == 1 { // one exits while the side is away
			require.NoError(t, os.WriteFile(h.file("go"), nil, 0o600))
		}
		h.awaitCount("side ", i+2)
		require.NotEqual(t, side, h.sidePID())
		h.connect()
		reply := must.Get(h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("stays"), Fence: Fence{Attempt: 2 + i}}))(t)
		require.Len(t, reply.Processes, 1)
		require.Equal(t, p.PID, reply.Processes[0].PID, "adopted, not started again")
	}
	e := h.wait("stays", 0)
	require.Equal(t, 9, e.Code)
	require.Equal(t, ReasonNone, e.Reason)
}

func TestSupervisorKilled(t *testing.T) {
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			h.sh("done", 0, "exit 3")
			h.wait("done", 0)
			leader := h.sh("worker-0", 0, `
				sh -c 'trap "" TERM HUP; echo $$ >$D/child; exec sleep 1000' &
				setsid sh -c 'setsid sh -c "echo \$\$ >$D/pid; exec sleep 1000" & ' &
				env -i sh -c "echo \$\$ >$D/bare; exec sleep 1000" &
				while :; do sleep 1000; done`)
			pids := []int{leader.PID, h.pidIn("child"), h.pidIn("pid"), h.pidIn("bare")}
			side := h.sidePID()
			h.kill9()
			h.awaitCount("swept", 1)
			require.Contains(t, h.lastEvent("swept"), "<nil>")
			for _, pid := range pids {
				h.until("all have gone", func() bool { return gone(pid) })
			}
			h.until("the Temporal client has exited", func() bool { return gone(side) })

			// The next supervisor knows the earlier processes, and starts nothing twice.
			h.start()
			e := h.wait("worker-0", 0)
			require.True(t, e.Lost)
			require.Equal(t, -9, e.Code)
			require.False(t, h.wait("done", 0).Lost)
			p := h.sh("worker-0", 0, "touch $D/twice")
			require.NotNil(t, p.Exit)
			require.True(t, p.Exit.Lost)
			require.Equal(t, leader.PID, p.PID)
			require.False(t, h.exists("twice"))
			require.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: 1}}))
			h.sh("worker-0", 1, "exit 2")
			require.Equal(t, 2, h.wait("worker-0", 1).Code)
		})
	}
}

func TestSecondSupervisorIsRefused(t *testing.T) {
	h := newHost(t, nil)
	require.False(t, LockFree(h.role.Dir))
	_, err := OpenState(h.role.Dir)
	require.ErrorContains(t, err, h.role.Dir)
	require.ErrorContains(t, err, "kill "+strconv.Itoa(h.cmd.Process.Pid))
	for range 100 { // checking the lock does not disturb its holder
		require.False(t, LockFree(h.role.Dir))
	}
	h.sh("fine", 0, "exit 0")
	h.kill9()
	h.awaitCount("swept", 1)
	h.until("the lock is free", func() bool { return LockFree(h.role.Dir) })
	require.True(t, LockFree(filepath.Join(h.dir, "nothing")))
	before := h.instance
	h.start()
	require.Equal(t, before, h.instance)
}

func TestLifeline(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, func(r *role) {
				change(r)
				r.Lifeline = true
				r.OrphanGrace = time.Second // polite needs less, even on a busy machine
				r.LongestGrace = long
			})
			h.sh("deaf", 0, `trap '' TERM; echo $$ >$D/deaf; setsid sh -c 'echo $$ >$D/daemon; exec sleep 1000' & while :; do sleep 1000; done`)
			h.sh("polite", 0, `trap 'exit 3' TERM; echo $$ >$D/polite; while :; do sleep 0.01; done`)
			pids := []int{h.pidIn("deaf"), h.pidIn("polite"), h.pidIn("daemon")}
			require.NoError(t, h.lifeline.Close())
			require.NoError(t, h.ended())
			for _, pid := range pids {
				require.True(t, gone(pid))
			}
			require.Equal(t, "true", h.lastEvent("closing "))
			// The side received all exits before it ended.
			require.Equal(t, 1, h.count("exit deaf -9 shutdown"))
			require.Equal(t, 1, h.count("exit polite 3 shutdown"))

			h.start() // the next side also receives them
			require.Equal(t, 3, h.wait("polite", 0).Code)
			require.False(t, h.wait("deaf", 0).Lost)
		})
	}
}

// The owner can stop everything with its own signals and graces. If it exits first, the remaining
// processes are stopped as if the owner was lost.
func TestTheOwnerHasEverythingStopped(t *testing.T) {
	h := newHost(t, func(r *role) {
		r.Lifeline = true
		r.OrphanGrace, r.LongestGrace = 50*time.Millisecond, long
	})
	h.sh("worker-0", 0, `trap 'exit 3' INT; echo $$ >$D/worker; while :; do sleep 0.01; done`)
	h.sh("ps-0", 0, `trap '' TERM; echo $$ >$D/ps; while :; do sleep 1000; done`)
	h.sh("slow", 0, `trap 'touch $D/asked' INT; echo $$ >$D/slow; while :; do sleep 0.01; done`)
	for _, name := range []string{"worker", "ps", "slow"} {
		h.pidIn(name)
	}
	line, err := json.Marshal(StopAll{Stops: Stops{
		Stop:  Stop{Signal: int(unix.SIGINT), Grace: long},
		Tasks: map[string]Stop{"ps-0": {Signal: sigTERM, Grace: 10 * time.Millisecond}},
	}})
	require.NoError(t, err)
	_, err = h.lifeline.Write(append([]byte("not understood\n"), append(line, '\n')...))
	require.NoError(t, err)
	require.Equal(t, 3, h.wait("worker-0", 0).Code)
	require.Equal(t, -9, h.wait("ps-0", 0).Code)
	h.until("it was asked", func() bool { return h.exists("asked") })
	require.Equal(t, "true", h.lastEvent("closing "))
	_, err = h.client.Start(h.ctx(), h.request("new", 0, "exit 0"))
	require.ErrorIs(t, err, ErrClosing)

	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("exit slow -15 shutdown"))

	// The supervisor's records can be read after it has exited.
	processes := must.Get(Journalled(h.role.Dir))(t)
	codes := map[string]int{}
	for _, p := range processes {
		codes[p.Key.Task] = p.Exit.Code
	}
	require.Equal(t, map[string]int{"worker-0": 3, "ps-0": -9, "slow": -15}, codes)
}

// When the supervisor shuts down, each process gets its own grace, up to a limit.
func TestGracesAtShutdown(t *testing.T) {
	h := newHost(t, func(r *role) { r.LongestGrace = 2 * time.Second })
	start := func(task string, stop Stop, script string) {
		r := h.request(task, 0, script)
		r.Command.Stop = stop
		h.launch(r)
		h.pidIn(task)
	}
	start("own", Stop{Signal: int(unix.SIGINT), Grace: long}, `trap 'exit 3' INT; echo $$ >$D/own; while :; do sleep 0.01; done`)
	start("none", Stop{Signal: sigTERM}, `trap 'exit 3' TERM; echo $$ >$D/none; while :; do sleep 0.01; done`)
	start("deaf", Stop{Signal: sigTERM, Grace: long}, `trap '' TERM; echo $$ >$D/deaf; while :; do sleep 1000; done`)
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, h.ended())
	exits := map[string]Exit{}
	for _, p := range must.Get(Journalled(h.role.Dir))(t) {
		exits[p.Key.Task] = *p.Exit
	}
	require.Equal(t, 3, exits["own"].Code)
	require.Equal(t, -9, exits["none"].Code)
	require.Empty(t, exits["none"].Detail)
	require.Equal(t, -9, exits["deaf"].Code)
	require.Equal(t, "its grace period of 10m0s was cut to 2s (--longest-grace)", exits["deaf"].Detail)
}

func TestShutdown(t *testing.T) {
	h := newHost(t, func(r *role) { r.LongestGrace = long })
	h.sh("slow", 0, `trap 'echo x >$D/asked' TERM; echo $$ >$D/slow; while :; do sleep 0.01; done`)
	h.pidIn("slow")
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	h.until("it was asked", func() bool { return h.exists("asked") })
	require.Equal(t, "false", h.lastEvent("closing "))
	_, err := h.client.Start(h.ctx(), h.request("new", 0, "exit 0"))
	require.ErrorIs(t, err, ErrClosing)
	_, err = h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 1})
	require.ErrorIs(t, err, ErrClosing)
	reply := must.Get(h.client.Closing(h.ctx()))(t)
	require.False(t, reply.OwnerGone)
	p := h.sh("slow", 0, "what there is can still be asked for")
	require.Nil(t, p.Exit)
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM)) // the second signal kills everything immediately
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("exit slow -9 shutdown"))
}

func TestSideThatStays(t *testing.T) {
	h := newHost(t, func(r *role) { r.SlowSide = true })
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("side terminated"))
}

// A supervisor closes everything it opened, over restarts of the side, abandoned calls and
// failed starts.
func TestNoLeaks(t *testing.T) {
	h := newHost(t, nil)
	before := func() int { return h.fds() }
	h.sh("warm", 0, "exit 0")
	h.wait("warm", 0)
	base := before()
	for i := range 20 {
		task := "t" + strconv.Itoa(i)
		h.sh(task, 0, "exit 0")
		h.wait(task, 0)
		r := h.request("bad"+strconv.Itoa(i), 0, "")
		r.Command.Path = "/nowhere"
		h.launch(r)
	}
	require.NoError(t, unix.Kill(h.sidePID(), unix.SIGKILL))
	h.awaitCount("side ", 2)
	h.connect()
	_, err := h.client.Processes(h.ctx(), testRun)
	require.NoError(t, err)
	h.until("descriptors are closed", func() bool { return before() <= base })
	reply := must.Get(h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 5}))(t)
	require.Len(t, reply.Ports, 5)
	_, err = h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	h.until("ports and journal are closed", func() bool { return before() < base })
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, h.ended())
	fields := strings.Fields(h.lastEvent("goroutines "))
	require.Len(t, fields, 2, "%v", fields)
	require.LessOrEqual(t, number(t, fields[1]), number(t, fields[0]), "goroutines after and before")
	fields = strings.Fields(h.lastEvent("descriptors "))
	require.LessOrEqual(t, number(t, fields[1]), number(t, fields[0]), "descriptors after and before")
}

func number(t *testing.T, text string) int {
	n := must.Get(strconv.Atoi(text))(t)
	return n
}

func (h *host) fds() int {
	entries := must.Get(os.ReadDir("/proc/" + strconv.Itoa(h.cmd.Process.Pid) + "/fd"))(h.t)
	return len(entries)
}

// A run whose journal was last written long ago continues after the loss of the supervisor: in
// the same generation if each task is restarted on its own, and in the next if the whole group
// is.
func TestOldJournalOfAnOpenRun(t *testing.T) {
	for generation, loss := range []string{"supervisor killed", "another boot"} {
		t.Run(loss, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			h.sh("worker-0", 0, "exec sleep 1000")
			h.kill9()
			h.awaitCount("swept", 1)
			path := filepath.Join(h.role.Dir, runHash(testRun)+openJournal)
			if loss == "another boot" {
				boot := must.Get(bootID())(t)
				raw := must.Get(os.ReadFile(path))(t)
				raw = bytes.ReplaceAll(raw, fmt.Appendf(nil, "%q", boot), []byte(`"another boot"`))
				require.NoError(t, os.WriteFile(path, raw, 0o600))
			}
			old := time.Now().AddDate(0, 0, -400)
			require.NoError(t, os.Chtimes(path, old, old))

			h.start()
			reply := must.Get(h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: 2}}))(t)
			require.Len(t, reply.Processes, 1)
			require.True(t, reply.Processes[0].Exit.Lost)
			r := h.request("worker-0", 0, "exit 4")
			r.Key.Generation, r.Fence.Attempt = generation, 3
			if generation == 0 {
				require.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: r.Key, Fence: r.Fence, Number: 0}))
				r.Number = 1
			}
			h.launch(r)
			p := must.Get(h.client.Wait(h.ctx(), ProcessRef{Key: r.Key, Number: r.Number}))(t)
			require.Equal(t, 4, p.Exit.Code)
		})
	}
}

// A side with nothing left to report does not delay the shutdown, even if it would stay.
func TestTheSideOfRecordedRunsIsKilled(t *testing.T) {
	h := newHost(t, func(r *role) { r.Lifeline, r.SlowSide = true, true })
	h.sh("worker-0", 0, `trap 'exit 3' TERM; echo $$ >$D/worker; while :; do sleep 0.01; done`)
	h.pidIn("worker")
	line := must.Get(json.Marshal(StopAll{Stops: Stops{Stop: Stop{Signal: sigTERM, Grace: long}}, Recorded: true}))(t)
	_, err := h.lifeline.Write(append(line, '\n'))
	require.NoError(t, err)
	require.NoError(t, h.ended())
	require.Zero(t, h.count("side terminated"))
	processes := must.Get(Journalled(h.role.Dir))(t)
	require.Len(t, processes, 1)
	require.Equal(t, 3, processes[0].Exit.Code, "the processes come first")
}

// If the owner was interrupted, the run's own stop sends that signal. A stop that an operator
// requests sends the operator's signal.
func TestTheOwnersSignalIsSentLater(t *testing.T) {
	h := newHost(t, func(r *role) { r.Lifeline = true })
	const loop = `trap 'exit 2' INT; trap 'exit 3' TERM; echo $$ >$D/%[1]s; while :; do sleep 0.01; done`
	for _, task := range []string{"worker-0", "worker-1", "ps-0"} {
		h.sh(task, 0, fmt.Sprintf(loop, task))
		h.pidIn(task)
	}
	line := must.Get(json.Marshal(StopAll{Stops: Stops{Stop: Stop{Signal: int(unix.SIGINT)}, Tasks: map[string]Stop{"ps-0": {Signal: sigTERM}}}, Later: true}))(t)
	_, err := h.lifeline.Write(append(line, '\n'))
	require.NoError(t, err)
	stop := func(reason Reason, task string) int {
		_, err := h.client.Stop(h.ctx(), StopRequest{Run: keyOf(task).Run, Tasks: []string{task}, Signal: sigTERM, Grace: long, Reason: reason})
		require.NoError(t, err)
		p := must.Get(h.client.Wait(h.ctx(), ProcessRef{Key: keyOf(task)}))(t)
		return p.Exit.Code
	}
	require.Equal(t, 3, stop(ReasonTerminate, "worker-1"))
	require.Equal(t, 3, stop(ReasonCollateral, "ps-0"))
	require.Equal(t, 2, stop(ReasonCollateral, "worker-0"))
}
