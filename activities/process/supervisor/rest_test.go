package supervisor

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// leaves starts a process that leaves two processes running, one in its group and one in another
// session, and exits with 5. Polite ones note the stop signal in a file, wait for a file go, and
// then exit. Deaf ones do not.
func (h *host) leaves(what string, stop Stop) {
	h.t.Helper()
	r := h.request("leaver", 0, `
		polite() { trap "echo asked >>$D/asked-$1" TERM; echo $$ >$D/$1; until [ -s $D/asked-$1 ] && [ -e $D/go ]; do sleep 0.01; done; }
		deaf() { trap "" TERM; echo $$ >$D/$1; exec sleep 1000; }
		case $1 in
		polite | deaf) "$@" ;;
		*)
			sh "$0" $LEAVES group &
			setsid sh "$0" $LEAVES daemon &
			until [ -s $D/group ] && [ -s $D/daemon ]; do sleep 0.01; done
			exit 5
		esac`)
	// The script restarts itself.
	require.NoError(h.t, os.WriteFile(h.file("script"), []byte(r.Command.Args[2]), 0o600))
	r.Command.Args = []string{"sh", h.file("script")}
	r.Command.Env = append(r.Command.Env, "LEAVES="+what)
	r.Command.Stop = stop
	p := h.launch(r)
	require.Nil(h.t, p.Exit)
}

func (h *host) lives(task string) bool {
	h.t.Helper()
	reply := must.Get(h.client.Processes(h.ctx(), testRun))(h.t)
	for _, p := range reply.Processes {
		if p.Key.Task == task {
			return p.Exit == nil
		}
	}
	return false
}

// Processes that a program leaves running when it exits are stopped like its task.
func TestTheRestIsAskedToEnd(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			h.leaves("polite", Stop{sigTERM, long})
			for _, name := range []string{"asked-group", "asked-daemon"} {
				h.until(name, func() bool { return h.exists(name) })
			}
			require.True(t, h.lives("leaver"), "a task has ended only when all of it has")
			meanwhile := time.Now()
			require.NoError(t, os.WriteFile(h.file("go"), nil, 0o600))
			e := h.wait("leaver", 0)
			assert.Equal(t, 5, e.Code)
			assert.Equal(t, ReasonNone, e.Reason)
			assert.True(t, e.Ended.Before(meanwhile), "the end is that of the leader")
			assert.Equal(t, 2, e.Swept)
			assert.Zero(t, e.Killed)
			for _, name := range []string{"asked-group", "asked-daemon"} {
				assert.Equal(t, 1, strings.Count(must.Read(t, h.file(name)), "asked"), "one signal each")
			}
			assert.Empty(t, h.cookied())
		})
	}
}

// Processes that do not exit are killed.
func TestTheRestIsKilledAfterItsGrace(t *testing.T) {
	for way, change := range mainWay() {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			h.leaves("deaf", Stop{sigTERM, 50 * time.Millisecond})
			e := h.wait("leaver", 0)
			assert.Equal(t, 5, e.Code)
			assert.Equal(t, ReasonNone, e.Reason)
			assert.Equal(t, 2, e.Swept)
			assert.Equal(t, 2, e.Killed)
			assert.Empty(t, h.cookied())
		})
	}
}

// A request to stop the task, even from another side, shortens the grace.
func TestTheGraceOfTheRestIsCutShort(t *testing.T) {
	for name, cut := range map[string]func(*host){
		"kill":    func(h *host) { assert.Empty(h.t, h.stop(sigKILL, 0), "the program has ended by itself") },
		"stop":    func(h *host) { assert.Empty(h.t, h.stop(sigTERM, 10*time.Millisecond)) },
		"upgrade": func(h *host) { h.upgrade(); h.stop(sigKILL, 0) },
		"release": func(h *host) {
			_, err := h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{sigTERM, time.Millisecond}}})
			assert.NoError(h.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newUpgradable(t)
			h.leaves("deaf", Stop{sigTERM, long})
			h.until("the leader has ended", func() bool {
				reply := must.Get(h.client.Processes(h.ctx(), testRun))(t)
				return gone(reply.Processes[0].PID)
			})
			require.True(t, h.lives("leaver"))
			cut(h)
			e := h.wait("leaver", 0)
			assert.Equal(t, 5, e.Code)
			assert.Equal(t, ReasonNone, e.Reason)
			assert.Empty(t, h.cookied())
		})
	}
}
