package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// ways are the ways that this host can keep its processes together.
var ways = func() map[string]func(*role) {
	all := map[string]func(*role){
		"cgroups":    func(*role) {},
		"no cgroups": func(r *role) { r.NoCgroups = true },
		"no lists of children": func(r *role) {
			r.NoCgroups = true
			r.NoChildren = true
		},
	}
	if cgroup.Own() == "" {
		delete(all, "cgroups")
	}
	return all
}()

// mainWay returns only this machine's way, or all ways in make test-long. It is for tests that
// depend little on the way.
func mainWay() map[string]func(*role) {
	if testing.Short() {
		return map[string]func(*role){"as here": func(*role) {}}
	}
	return ways
}

// daemons are ways to leave a process behind. Each writes its pid to $D/pid.
var daemons = map[string]string{
	"same group":     `sh -c 'echo $$ >$D/pid; exec sleep 1000' & `,
	"ignores all":    `sh -c 'trap "" TERM HUP INT; echo $$ >$D/pid; exec sleep 1000' & `,
	"own session":    `setsid sh -c 'echo $$ >$D/pid; exec sleep 1000' & `,
	"double fork":    `setsid sh -c 'setsid sh -c "echo \$\$ >$D/pid; exec sleep 1000" & ' & `,
	"a tree":         `setsid sh -c 'sh -c "sleep 1000 & sleep 1000" & setsid sleep 1000 & echo $$ >$D/pid; wait' & `,
	"no environment": `env -i sh -c "echo \$\$ >$D/pid; exec sleep 1000" & `,
	"none of it":     `env -i setsid sh -c "echo \$\$ >$D/pid; exec sleep 1000" & `,
}

func TestNothingIsLeftBehind(t *testing.T) {
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			for name, script := range daemons {
				t.Run(name, func(t *testing.T) {
					task := strings.ReplaceAll(name, " ", "-")
					h.sh(task, 0, `rm -f $D/pid $D/up; `+script+`while [ ! -s $D/pid ]; do sleep 0.01; done; exit 5`)
					e := h.wait(task, 0)
					require.Equal(t, 5, e.Code)
					require.False(t, e.Unkillable)
					if way != "cgroups" { // a cgroup is killed as a whole, so the count is not always known
						require.Positive(t, e.Swept)
					}
					require.Equal(t, ReasonNone, e.Reason)
					require.True(t, gone(h.pidIn("pid")), "a task has ended only when all of it has")
					require.Empty(t, h.cookied())

					// The same holds if the leader is stopped.
					require.NoError(t, h.client.Grant(h.ctx(), GrantRequest{Key: keyOf(task), Fence: Fence{Attempt: 1}}))
					h.sh(task, 1, `rm $D/pid; `+script+`while [ ! -s $D/pid ]; do sleep 0.01; done; echo $$ >$D/up; while :; do sleep 1000; done`)
					h.pidIn("up")
					pid := h.pidIn("pid")
					require.False(t, gone(pid), "a daemon of a living task is left alone")
					grace := long
					if name == "ignores all" {
						grace = time.Second
					}
					h.stop(sigTERM, grace, task)
					require.Equal(t, -15, h.wait(task, 1).Code)
					require.True(t, gone(pid))
					require.Empty(t, h.cookied())
				})
			}
		})
	}
}

// An orphan may exit after the children are listed and before it is reaped. Its own children are
// then not listed yet, but still belong to the task.
func TestNothingIsLeftBehindByWhatDiesWhileChildrenAreListed(t *testing.T) {
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			if way == "cgroups" {
				t.Skip("a cgroup has no lists")
			}
			h := newHost(t, func(r *role) {
				change(r)
				r.LateKills = true
			})
			h.sh("leaver", 0, daemons["a tree"]+`while [ ! -s $D/pid ]; do sleep 0.01; done; exit 5`)
			e := h.wait("leaver", 0)
			require.Equal(t, 5, e.Code)
			require.False(t, e.Unkillable)
			require.True(t, gone(h.pidIn("pid")))
			require.Empty(t, h.cookied(), "a task has ended only when all of it has")
		})
	}
}

// One task's end does not touch another's background processes.
func TestSweepsOnlyItsOwn(t *testing.T) {
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			daemon := func(name string) string {
				return fmt.Sprintf(`setsid sh -c 'echo $$ >$D/%s; exec sleep 1000' & while [ ! -s $D/%s ]; do sleep 0.01; done; `, name, name)
			}
			h.sh("stays", 0, daemon("a")+`env -i setsid sh -c "echo \$\$ >$D/anonymous; exec sleep 1000" & while :; do sleep 1000; done`)
			h.pidIn("anonymous")
			h.sh("goes", 0, daemon("b")+`exit 0`)
			require.Zero(t, h.wait("goes", 0).Code)
			require.True(t, gone(h.pidIn("b")))
			require.False(t, gone(h.pidIn("a")))
			require.False(t, gone(h.pidIn("anonymous")))
			h.stop(sigTERM, long)
			h.wait("stays", 0)
			require.True(t, gone(h.pidIn("a")))
			require.True(t, gone(h.pidIn("anonymous")))
		})
	}
}

// Orphans that exit are reaped while their task lives.
func TestOrphansAreReaped(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			h.sh("busy", 0, `for i in 1 2 3 4 5; do (sh -c 'echo $$ >$D/o'$i'; read x <$D/never' 2>/dev/null &); done; echo $$ >$D/up; while :; do sleep 1000; done`)
			h.pidIn("up")
			for i := range 5 {
				pid := h.pidIn(fmt.Sprintf("o%d", i+1))
				h.until("the orphan is reaped", func() bool { _, err := proc.ReadStat(pid); return err != nil })
			}
		})
	}
}

// A process that the side starts for itself never belongs to a task, even if tasks start and
// end.
func TestDaemonsOfTheSideAreLeftAlone(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, func(r *role) {
				change(r)
				r.SideDaemon = true
			})
			daemon := number(t, h.lastEvent("daemon "))
			t.Cleanup(func() { _ = unix.Kill(daemon, unix.SIGKILL) })
			h.sh("goes", 0, "setsid sleep 1000 & exit 1")
			h.wait("goes", 0)
			require.False(t, gone(daemon))
			h.role.SideDaemon = false
			h.kill9()
			h.awaitCount("swept", 1)
			require.False(t, gone(daemon), "the side's sweep")
			h.start()
			require.False(t, gone(daemon), "the next supervisor's")
			require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
			require.NoError(t, h.ended())
			require.False(t, gone(daemon))
		})
	}
}

// With cgroups, even a process that nothing identifies is killed with its task, and
// no later.
func TestCgroups(t *testing.T) {
	parent := cgroup.Make("probe000")
	if parent == "" {
		t.Skip("no cgroups here")
	}
	cgroup.Remove(parent)
	h := newHost(t, nil)
	dir := filepath.Join(filepath.Dir(parent), "clusterrun-"+h.instance)
	h.sh("older", 0, "exec sleep 1000")
	r := h.request("goes", 0, daemons["none of it"]+"cat /proc/self/cgroup; while [ ! -s $D/pid ]; do sleep 0.01; done; exit 5")
	h.launch(r)
	require.Equal(t, 5, h.wait("goes", 0).Code)
	require.True(t, gone(h.pidIn("pid")), "although it could have been the other's")
	raw := must.Get(os.ReadFile(r.Command.Stdout))(t)
	name := cgroup.Name(runHash(testRun), keyOf("goes"), 0)
	require.Contains(t, string(raw), "/clusterrun-"+h.instance+"/"+name)
	h.until("its cgroup is removed", func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err != nil })
	require.DirExists(t, filepath.Join(dir, cgroup.Name(runHash(testRun), keyOf("older"), 0)))

	h.kill9()
	h.awaitCount("swept", 1)
	require.NoDirExists(t, dir, "swept with it")
	h.start()
	require.DirExists(t, dir)
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, h.ended())
	require.NoDirExists(t, dir)
}

// A supervisor may run in another supervisor's task. None of its processes outlives that task.
func TestNestedSupervisor(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			outer := newHost(t, change)
			inner := role{Dir: filepath.Join(outer.dir, "inner-"+filepath.Base(filepath.Dir(outer.role.Dir)), "state"), Events: outer.file("inner-events")}
			change(&inner)
			text := must.Get(json.Marshal(inner))(t)
			r := outer.request("nest", 0, "")
			exe := must.Get(os.Executable())(t)
			r.Command.Path, r.Command.Args = exe, []string{"supervisor.test", "-test.run=^$"}
			r.Command.Env = append(r.Command.Env, roleVar+"="+string(text), "GORACE=atexit_sleep_ms=0", "TMPDIR="+os.TempDir())
			_, err := outer.client.Start(outer.ctx(), r)
			require.NoError(t, err)

			h := &host{t: t, role: inner, dir: outer.dir}
			h.awaitCount("side ", 1)
			h.connect()
			defer h.client.Close()
			defer os.Remove(sideSocket(inner.Dir))
			h.sh("leaf", 0, `setsid sh -c 'echo $$ >$D/leaf-daemon; exec sleep 1000' & echo $$ >$D/leaf; while :; do sleep 1000; done`)
			pids := []int{h.pidIn("leaf"), h.pidIn("leaf-daemon"), h.sidePID()}
			outer.stop(sigKILL, 0)
			require.Equal(t, -9, outer.wait("nest", 0).Code)
			for _, pid := range pids {
				require.True(t, gone(pid))
			}
		})
	}
}
