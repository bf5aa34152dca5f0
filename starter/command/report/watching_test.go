package report

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestNewsOfARun(t *testing.T) {
	var n News
	s := &starter.Status{RunID: "big", Open: true, State: spec.RunRunning, Started: time.Now()}
	for i := range 400 {
		s.Tasks = append(s.Tasks, starter.TaskStatus{
			TaskStatus: spec.TaskStatus{Name: fmt.Sprintf("worker-%d", i), Type: "worker", Index: i, Rank: i, Host: []string{"a", "b"}[i/200], State: spec.TaskRunning},
		})
	}
	assert.Equal(t, "running: 400 running", n.Of(s))
	assert.Empty(t, n.Of(s))
	for i := range 10 {
		s.Tasks[i].Restarts = 1
	}
	s.Tasks[300].NextStart = time.Unix(1, 0)
	assert.Equal(t, "running: 399 running, 1 restarting; restarting: worker-300; started again: worker-0, worker-1, worker-2, worker-3, worker-4, worker-5, worker-6, worker-7 and 2 more", n.Of(s))
	s.Tasks[300].NextStart, s.Tasks[300].Restarts = time.Time{}, 9
	s.Tasks[2].State, s.Tasks[2].Exit = spec.TaskEnded, &spec.Exit{Cause: spec.CauseOOM, Signal: "SIGKILL"}
	assert.Equal(t, "running: 399 running, 1 failed; failed: worker-2 (SIGKILL, oom); started again: worker-300", n.Of(s))
	s.Silent = []starter.SilentHost{{Host: "b"}}
	assert.Regexp(t, `^running: 199 running, 1 failed, 200 missing; missing: worker-200, .* and 192 more$`, n.Of(s))
	s.Silent = nil
	assert.Equal(t, "running: 399 running, 1 failed", n.Of(s))
	unanswered := &starter.Status{Open: true, Unanswered: true}
	assert.Empty(t, n.Of(unanswered), "it may be late")
	assert.Empty(t, n.Of(s))
	assert.Empty(t, n.Of(unanswered))
	assert.Equal(t, "open, but its host worker does not answer", n.Of(unanswered))
	unanswered.Unattended = true
	assert.Equal(t, "open, but no host worker executes it", n.Of(unanswered))
	s.Open, s.Verdict = false, spec.VerdictFailed
	assert.Equal(t, "failed", n.Of(s))
}

// A waiting run reports its reason once, although the remaining time changes.
func TestNewsOfAWait(t *testing.T) {
	var n News
	s := &starter.Status{Open: true, State: spec.RunPlacing, Waiting: []starter.Waiting{{Queue: "clusterrun", Refusal: "3 slots", Position: 2, Until: time.Now().Add(time.Hour)}}}
	assert.Equal(t, "pending; waiting for 3 slots (position 2 in queue clusterrun)", n.Of(s))
	s.Waiting[0].Until = time.Now()
	assert.Empty(t, n.Of(s))
	s.Waiting[0].Position = 1
	assert.Equal(t, "pending; waiting for 3 slots (position 1 in queue clusterrun)", n.Of(s))
}

// A text is drawn over its last version, and leaves the rest of the terminal as it was.
func TestRedrawnText(t *testing.T) {
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	require.NoError(t, pty.SetSize(slave, 5, 14))
	r := &cli.Redrawn{Terminal: slave}
	written := func(text string) string {
		require.NoError(t, r.Show(text))
		b, all := make([]byte, 1000), ""
		for !strings.HasSuffix(all, "\x1b[J") { // a terminal may split output into several pieces
			n, err := master.Read(b)
			require.NoError(t, err)
			all += string(b[:n])
		}
		return strings.ReplaceAll(strings.ReplaceAll(all, "\r\n", "\n"), "\x1b[K", "")
	}
	assert.Equal(t, "\rone\ntwo\n\x1b[J", written("one\ntwo\n"))
	assert.Equal(t, "\r\x1b[2A1234567890123…\n\x1b[J", written("123456789012345"), "cut to the width")
	assert.Equal(t, "\r\x1b[1A1\n2\n3\n… 3 lines more\n\x1b[J", written("1\n2\n3\n4\n5\n6"), "cut to the height")
	assert.Equal(t, "\r\x1b[4A世界世界世界…\n\x1b[J", written("世界世界世界世界"), "by columns")
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	assert.Error(t, (&cli.Redrawn{Terminal: f}).Show("x"))
}
