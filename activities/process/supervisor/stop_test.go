package supervisor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestStop(t *testing.T) {
	h := newHost(t, nil)
	const helped = `sh -c 'trap "echo x >$D/NAME-helper; exit" TERM; echo $$ >$D/NAME; while :; do sleep 0.01; done' & `
	// This takes nearly all of its grace, so the other cases run in parallel, in another run.
	last := h.request("last", 0, strings.ReplaceAll(helped, "NAME", "last")+
		`trap 'echo x >>$D/last-asked' TERM; while kill -0 $!; do sleep 0.01; done; exit 6`)
	last.Key.Run.RunID = "helpers"
	h.launch(last)
	h.pidIn("last")
	must.Get(h.client.Stop(h.ctx(), StopRequest{Run: last.Key.Run, Signal: sigTERM, Grace: 10 * time.Second, Reason: ReasonTerminate}))(t)

	t.Run("with grace", func(t *testing.T) {
		h.sh("polite", 0, `trap 'echo bye >$D/bye; exit 9' TERM; echo $$ >$D/polite; while :; do sleep 0.01; done`)
		h.pidIn("polite")
		require.Equal(t, []string{"polite"}, h.stop(sigTERM, long, "polite", "nobody"))
		e := h.wait("polite", 0)
		require.Equal(t, 9, e.Code)
		require.Equal(t, ReasonTerminate, e.Reason)
		require.True(t, h.exists("bye"))
		require.Empty(t, h.stop(sigTERM, long, "polite"), "nothing there to stop any more")
	})

	t.Run("has failed", func(t *testing.T) {
		ask := func(task string, failed bool, reason Reason) {
			r := StopRequest{Run: testRun, Tasks: []string{task}, Signal: sigTERM, Grace: long, Reason: reason, Failed: failed}
			_, err := h.client.Stop(h.ctx(), r)
			require.NoError(t, err)
		}
		h.sh("failed", 0, "exec sleep 1000")
		ask("failed", true, ReasonCollateral)
		require.True(t, h.wait("failed", 0).Failed)
		h.sh("told", 0, `trap 'echo >$D/heard' TERM; echo $$ >$D/told; while [ ! -e $D/enough ]; do sleep 0.01; done`)
		h.pidIn("told")
		ask("told", false, ReasonTerminate)
		h.until("it was asked", func() bool { return h.exists("heard") })
		ask("told", true, ReasonCollateral)
		require.NoError(t, os.WriteFile(h.file("enough"), nil, 0o600))
		e := h.wait("told", 0)
		require.Equal(t, ReasonTerminate, e.Reason)
		require.False(t, e.Failed, "only the first who stops it can know")
	})

	t.Run("ignores SIGTERM", func(t *testing.T) {
		h.sh("deaf", 0, `trap '' TERM; echo $$ >$D/deaf; while :; do sleep 1000; done`)
		h.pidIn("deaf")
		h.stop(sigTERM, 50*time.Millisecond, "deaf")
		require.Equal(t, -9, h.wait("deaf", 0).Code)
	})

	t.Run("at once", func(t *testing.T) {
		h.sh("now", 0, `trap 'echo x >$D/asked' TERM; echo $$ >$D/now; while :; do sleep 1000; done`)
		h.pidIn("now")
		h.stop(sigTERM, 0, "now")
		require.Equal(t, -9, h.wait("now", 0).Code)
		require.False(t, h.exists("asked"))
		h.sh("kill", 0, "exec sleep 1000")
		h.stop(sigKILL, long, "kill")
		require.Equal(t, -9, h.wait("kill", 0).Code)
	})

	t.Run("stopped by SIGSTOP", func(t *testing.T) {
		h.sh("frozen", 0, `trap 'exit 3' TERM; echo $$ >$D/frozen; while :; do sleep 0.01; done`)
		h.pidIn("frozen")
		reply := must.Get(h.client.Signal(h.ctx(), SignalRequest{Run: testRun, Tasks: []string{"frozen"}, Signal: int(unix.SIGSTOP)}))(t)
		require.Equal(t, []string{"frozen"}, reply.Tasks)
		h.stop(sigTERM, long, "frozen")
		require.Equal(t, 3, h.wait("frozen", 0).Code)
	})

	t.Run("a second request", func(t *testing.T) {
		h.sh("twice", 0, `trap 'echo x >>$D/asks' TERM; echo $$ >$D/twice; while :; do sleep 0.01; done`)
		h.pidIn("twice")
		h.stop(sigTERM, long, "twice")
		h.until("it was asked", func() bool {
			raw, err := os.ReadFile(h.file("asks"))
			return err == nil && len(raw) > 0 // shortly after it exists
		})
		// A second request does not repeat the signal, add time or change the reason.
		_, err := h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Grace: 2 * long, Reason: ReasonSilence})
		require.NoError(t, err)
		_, err = h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Grace: time.Millisecond, Reason: ReasonRestart})
		require.NoError(t, err)
		e := h.wait("twice", 0)
		require.Equal(t, -9, e.Code)
		require.Equal(t, ReasonTerminate, e.Reason)
		require.Equal(t, "x\n", must.Read(t, h.file("asks")))
	})

	t.Run("the whole group is asked", func(t *testing.T) {
		r := h.request("group", 0, strings.ReplaceAll(helped, "NAME", "group")+`trap : TERM; wait; wait; exit 6`)
		r.Command.StopGroup = true
		h.launch(r)
		h.pidIn("group")
		h.stop(sigTERM, long, "group")
		require.Equal(t, 6, h.wait("group", 0).Code)
		require.True(t, h.exists("group-helper"))
	})

	t.Run("the program is asked before its helpers", func(t *testing.T) {
		h.sh("program", 0, strings.ReplaceAll(helped, "NAME", "program")+
			`trap 'touch $D/saving; until [ -e $D/save ]; do sleep 0.01; done; [ -e $D/program-helper ] && exit 5; exit 6' TERM; while :; do sleep 0.01; done`)
		h.pidIn("program")
		h.stop(sigTERM, long, "program")
		h.until("it saves its work", func() bool { return h.exists("saving") })
		require.NoError(t, os.WriteFile(h.file("save"), nil, 0o600))
		e := h.wait("program", 0)
		require.Equal(t, 6, e.Code, "its helper was not asked before it had ended")
		require.Equal(t, 1, e.Swept)
		require.Zero(t, e.Killed, "the helper had the rest of the grace")
		require.True(t, h.exists("program-helper"))
	})

	t.Run("a signal reaches the program alone", func(t *testing.T) {
		h.sh("told-alone", 0, strings.ReplaceAll(helped, "NAME", "told-alone")+
			`trap '[ -e $D/told-alone-helper ] && exit 5; exit 6' TERM; while :; do sleep 0.01; done`)
		h.pidIn("told-alone")
		must.Get(h.client.Signal(h.ctx(), SignalRequest{Run: testRun, Tasks: []string{"told-alone"}, Signal: sigTERM}))(t)
		require.Equal(t, 6, h.wait("told-alone", 0).Code)
	})

	t.Run("the exit tells a signal that was asked for", func(t *testing.T) {
		for _, asked := range []bool{false, true} {
			task := fmt.Sprint("asked-", asked)
			p := h.sh(task, 0, "exec sleep 1000")
			if asked {
				must.Get(h.client.Signal(h.ctx(), SignalRequest{Run: testRun, Tasks: []string{task}, Signal: int(unix.SIGUSR1)}))(t)
			} else {
				require.NoError(t, unix.Kill(p.PID, unix.SIGUSR1))
			}
			e := h.wait(task, 0)
			require.Equal(t, -int(unix.SIGUSR1), e.Code)
			require.Equal(t, ReasonNone, e.Reason)
			require.Equal(t, asked, e.Sent)
		}
	})

	t.Run("empty list", func(t *testing.T) {
		h.sh("bystander", 0, "exec sleep 1000")
		reply := must.Get(h.client.Stop(h.ctx(), StopRequest{Run: testRun, Tasks: []string{}, Signal: sigKILL}))(t)
		require.Empty(t, reply.Tasks, "an empty list is nobody, not everybody")
		other := testRun
		other.RunID = "r2"
		reply = must.Get(h.client.Stop(h.ctx(), StopRequest{Run: other, Signal: sigKILL}))(t)
		require.Empty(t, reply.Tasks, "another run")
		sent := must.Get(h.client.Signal(h.ctx(), SignalRequest{Run: testRun, Tasks: []string{"bystander", "polite"}, Signal: int(unix.SIGCONT)}))(t)
		require.Equal(t, []string{"bystander"}, sent.Tasks)
		_, err := h.client.Signal(h.ctx(), SignalRequest{Run: testRun, Tasks: []string{"bystander"}, Signal: 99})
		require.ErrorIs(t, err, ErrInvalid)
		require.Equal(t, []string{"bystander"}, h.stop(sigKILL, 0))
		h.wait("bystander", 0)
	})

	t.Run("helpers are asked before the grace is over", func(t *testing.T) {
		p := must.Get(h.client.Wait(h.ctx(), ProcessRef{Key: last.Key}))(t)
		require.Equal(t, 6, p.Exit.Code)
		require.Equal(t, "x\n", must.Read(t, h.file("last-asked")), "the program was asked once")
	})
}

// A process that exits just before we stop it must not be reported as stopped, since it may be the
// cause of the whole failure.
func TestStopDoesNotClaimTheDead(t *testing.T) {
	h := newHost(t, nil)
	for i := range 20 {
		task := "worker-" + string(rune('a'+i))
		p := h.sh(task, 0, "exit 5")
		h.until("it is dead", func() bool { return gone(p.PID) })
		require.Empty(t, h.stop(sigTERM, long, task))
		e := h.wait(task, 0)
		require.Equal(t, 5, e.Code)
		require.Equal(t, ReasonNone, e.Reason)
	}
}

func TestKillAt(t *testing.T) {
	h := newHost(t, nil)
	start := func(task string, at int64) {
		r := h.request(task, 0, `trap '' TERM; while :; do sleep 1000; done`)
		r.Command.KillAt = at
		h.launch(r)
	}
	now := BootNanos()
	start("late", now+int64(time.Hour))
	start("past", 1)
	start("soon", now+int64(300*time.Millisecond))
	start("sooner", now+int64(200*time.Millisecond))
	h.sh("free", 0, "exec sleep 1000")
	for _, task := range []string{"past", "sooner", "soon"} {
		e := h.wait(task, 0)
		require.Equal(t, -9, e.Code, task)
		require.Equal(t, ReasonMaxRunTime, e.Reason, task)
	}
	require.GreaterOrEqual(t, h.wait("soon", 0).BootNanos, now+int64(300*time.Millisecond))
	reached := h.stop(sigKILL, 0)
	slices.Sort(reached)
	require.Equal(t, []string{"free", "late"}, reached)
}

// A process that survives SIGKILL is reported after a limit.
func TestUnkillable(t *testing.T) {
	h := newHost(t, func(r *role) {
		r.KillBound = 100 * time.Millisecond
		r.Unkillable = r.Events + ".unkillable"
	})
	require.NoError(t, os.WriteFile(h.role.Unkillable, nil, 0o600))
	p := h.sh("stuck", 0, `trap '' TERM; echo $$ >$D/stuck; while :; do sleep 1000; done`)
	h.pidIn("stuck")
	h.stop(sigTERM, time.Millisecond, "stuck")
	e := h.wait("stuck", 0)
	require.True(t, e.Unkillable)
	require.Equal(t, -9, e.Code)
	require.Equal(t, ReasonTerminate, e.Reason)
	require.False(t, gone(p.PID))
	require.Equal(t, p.PID, e.Left[0].PID)
	require.Len(t, e.Survivors(), 1)

	// The leader exits but leaves a process that does not.
	h.sh("parent", 0, `sh -c 'trap "" TERM; echo $$ >$D/orphan; exec sleep 1000' & while [ ! -s $D/orphan ]; do sleep 0.01; done; exit 4`)
	e = h.wait("parent", 0)
	require.True(t, e.Unkillable)
	require.Equal(t, 4, e.Code)
	orphan := h.pidIn("orphan")
	require.False(t, gone(orphan))
	require.Len(t, e.Left, 1)
	require.Equal(t, orphan, e.Left[0].PID)

	// Their tasks are not restarted, since two processes would share a rank.
	for _, task := range []string{"stuck", "parent"} {
		require.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: keyOf(task), Fence: Fence{Attempt: 1}}))
		_, err := h.client.Start(h.ctx(), h.request(task, 1, "exit 1"))
		require.ErrorIs(t, err, ErrRemains)
		require.ErrorContains(t, err, "cannot be started again until SIGKILL ends its process")
	}
	// Neither is a later generation.
	later := h.request("stuck", 0, "exit 1")
	later.Key.Generation = 1
	_, err := h.client.Start(h.ctx(), later)
	require.ErrorIs(t, err, ErrRemains)

	require.NoError(t, os.Remove(h.role.Unkillable))
	require.NoError(t, unix.Kill(-p.PID, unix.SIGKILL))
	h.until("it is reaped after all", func() bool { return len(e.Survivors()) == 0 && gone(p.PID) })
	h.sh("stuck", 1, "exit 1")
	require.Equal(t, 1, h.wait("stuck", 1).Code)
	reply := must.Get(h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}}))(t)
	require.Len(t, reply.Processes, 3)
	h.until("the leader is reaped", func() bool { _, err := proc.ReadStat(p.PID); return err != nil })
}

func TestRelease(t *testing.T) {
	h := newHost(t, nil)
	h.sh("worker-0", 0, "exit 3")
	h.wait("worker-0", 0)
	h.sh("worker-1", 0, `trap 'exit 8' TERM; echo $$ >$D/up; while :; do sleep 0.01; done`)
	h.pidIn("up")
	h.sh("worker-9", 0, `trap 'exit 9' INT; echo $$ >$D/up9; while :; do sleep 0.01; done`)
	h.pidIn("up9")
	release := func() []Process {
		reply, err := h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{
			Stop: Stop{Signal: sigTERM, Grace: long}, Tasks: map[string]Stop{"worker-9": {Signal: int(unix.SIGINT), Grace: long}},
		}})
		require.NoError(t, err)
		return reply.Processes
	}
	all := release()
	require.Len(t, all, 3)
	require.Equal(t, keyOf("worker-0"), all[0].Key)
	require.Equal(t, 3, all[0].Exit.Code)
	require.Equal(t, 8, all[1].Exit.Code)
	require.Equal(t, 9, all[2].Exit.Code)
	require.Equal(t, ReasonCollateral, all[1].Exit.Reason)
	require.Equal(t, all, release(), "again, the same")

	_, err := h.client.Start(h.ctx(), h.request("worker-2", 0, "exit 1"))
	require.ErrorIs(t, err, ErrReleased)
	_, err = h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 1})
	require.ErrorIs(t, err, ErrReleased)
	require.Equal(t, 3, h.wait("worker-0", 0).Code, "its processes stay readable")
	p := h.sh("worker-0", 0, "exit 1")
	require.Equal(t, 3, p.Exit.Code)
	attached := must.Get(h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-1"), Fence: Fence{Attempt: 1}}))(t)
	require.Len(t, attached.Processes, 1)
	listed := must.Get(h.client.Processes(h.ctx(), runkey.Run{}))(t)
	require.Empty(t, listed.Processes)
	listed = must.Get(h.client.Processes(h.ctx(), testRun))(t)
	require.Equal(t, all, listed.Processes)

	// A run unknown to this host is also released, since its start may still be on its way.
	other := runkey.Run{Namespace: "default", WorkflowID: "other", RunID: "r9"}
	reply := must.Get(h.client.Release(h.ctx(), ReleaseRequest{Run: other, Stops: Stops{Stop: Stop{Signal: sigTERM}}}))(t)
	require.Empty(t, reply.Processes)
	r := h.request("worker-0", 0, "exit 1")
	r.Key.Run = other
	_, err = h.client.Start(h.ctx(), r)
	require.ErrorIs(t, err, ErrReleased)

	// All this outlives the supervisor.
	h.kill9()
	h.awaitCount("swept", 1)
	h.start()
	require.Equal(t, all, release())
	_, err = h.client.Start(h.ctx(), r)
	require.ErrorIs(t, err, ErrReleased)
}

// A stop that names a process reaches only that, not even another of the same task.
func TestStopOfOneProcess(t *testing.T) {
	h := newHost(t, nil)
	h.sh("worker-0", 0, "exit 1")
	h.wait("worker-0", 0)
	require.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: keyOf("worker-0"), Fence: Fence{Attempt: 1}}))
	h.sh("worker-0", 1, "exec sleep 1000")
	next := keyOf("worker-0")
	next.Generation = 1
	stop := func(refs ...ProcessRef) []string {
		reply := must.Get(h.client.Stop(h.ctx(), StopRequest{Run: testRun, Processes: refs, Signal: sigTERM, Grace: long, Reason: ReasonCollateral}))(t)
		return reply.Tasks
	}
	require.Empty(t, stop(ref("worker-0", 0), ref("worker-1", 1), ProcessRef{Key: next, Number: 1}))
	require.Empty(t, stop([]ProcessRef{}...), "an empty list is nobody")
	reply := must.Get(h.client.Stop(h.ctx(), StopRequest{Run: testRun, Tasks: []string{"worker-0"}, Generation: 1, Signal: sigTERM, Grace: long}))(t)
	require.Empty(t, reply.Tasks)
	sent := must.Get(h.client.Signal(h.ctx(), SignalRequest{Run: testRun, Tasks: []string{"worker-0"}, Generation: 1, Signal: sigTERM}))(t)
	require.Empty(t, sent.Tasks)
	require.Equal(t, []string{"worker-0"}, stop(ref("worker-0", 1)))
	require.Equal(t, ReasonCollateral, h.wait("worker-0", 1).Reason)
}
