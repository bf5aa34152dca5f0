package hostcheck

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/remotecommand"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func checkerOf(t *testing.T, timeout time.Duration, checks ...Check) *Checker {
	return New(t.Context(), Config{
		Checks: checks, Timeout: timeout, Every: time.Millisecond, Log: zaptest.NewLogger(t), Executor: remotecommand.NewExecutor(t.TempDir(), "test"),
	})
}

// resultOf returns the result of a command.
func resultOf(t *testing.T, timeout time.Duration, command string) fleet.CheckResult {
	t.Helper()
	k := checkerOf(t, timeout, Check{Name: "own", Command: command})
	k.First(t.Context(), time.Minute)
	results := k.Results()
	require.Len(t, results, 1)
	return results[0]
}

func TestCommands(t *testing.T) {
	for command, want := range map[string]string{
		"true": "", "exit 3": "exit code 3", "no-such-program": "exit code 127: sh: 1: no-such-program: not found",
		"echo first; echo second >&2; exit 1": "exit code 1: first second", "kill -SEGV $$": "exit code 139 (SIGSEGV)",
		`printf 'red\033[31m\000 \377 text'; exit 1`:      "exit code 1: red[31m \uFFFD text",
		`[ -t 0 ] && exit 1; read x && exit 2; exit 0`:    "",
		"[ -z \"$CLUSTERRUN_WORKER_OPTIONS\" ] || exit 1": "",
	} {
		got := resultOf(t, time.Minute, command)
		if command == "no-such-program" { // shells differ
			assert.Contains(t, got.Failed, "not found")
			continue
		}
		if command == "echo first; echo second >&2; exit 1" { // in either order
			assert.Contains(t, got.Failed, "first")
			assert.Contains(t, got.Failed, "second")
			continue
		}
		assert.Equal(t, want, got.Failed, command)
		assert.WithinDuration(t, time.Now(), got.At, time.Minute)
	}
}

// Of a flood of output the end is kept.
func TestFlood(t *testing.T) {
	got := resultOf(t, time.Minute, "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 9")
	assert.Regexp(t, `^exit code 9: …x+ the end$`, got.Failed)
	assert.LessOrEqual(t, len(got.Failed), maxReason)
}

// A check that hangs is killed with all that it has started, also what has left its group and holds
// its output.
func TestHang(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\nsleep 600 & wait"), 0o700))
	got := resultOf(t, 300*time.Millisecond, "trap '' TERM HUP; echo waiting; setsid "+name+" & "+name)
	assert.Equal(t, "it did not end within 300ms: waiting", got.Failed)
	assert.Empty(t, running(t, name))
}

// What a check that succeeds leaves running is killed.
func TestLeftBehind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stays")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\nsleep 600 & wait"), 0o700))
	got := resultOf(t, time.Minute, "setsid "+name+" & echo $!")
	assert.Empty(t, got.Failed)
	assert.Empty(t, running(t, name))
}

// running returns the processes with that text in their command lines.
func running(t *testing.T, text string) (found []int) {
	pids, err := proc.PIDs()
	require.NoError(t, err)
	for _, pid := range pids {
		line, _ := os.ReadFile(filepath.Join(proc.Dir(pid), "cmdline"))
		if bytes.Contains(line, []byte(text)) {
			found = append(found, pid)
		}
	}
	return found
}

// A check that fails is repeated, and the host is fit again when it succeeds.
func TestLifted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "there")
	k := checkerOf(t, time.Minute, Check{Name: "own", Command: "test -e " + file})
	assert.Equal(t, []fleet.Failing{{Check: "own", Reason: "it has not ended yet"}}, k.Failing())
	go k.Run(t.Context(), func() bool { return true })
	<-k.Changed()
	failing := k.Failing()
	require.Len(t, failing, 1)
	assert.Equal(t, "exit code 1", failing[0].Reason)
	assert.ErrorContains(t, k.Admit(t.Context()), "its check own fails: exit code 1")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	<-k.Changed()
	assert.Empty(t, k.Failing())
	assert.NoError(t, k.Admit(t.Context()))
}

// A recent result counts when the host takes tasks, and an older one does not, unless the check
// takes long.
func TestAdmit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "there")
	k := checkerOf(t, time.Minute, Check{Name: "own", Command: "test ! -e " + file})
	k.First(t.Context(), time.Minute)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, k.Admit(t.Context()), "the result is recent")
	w := k.watched[0]
	w.last.At, w.last.Seconds = time.Now().Add(-time.Hour), 2
	require.NoError(t, k.Admit(t.Context()), "it takes two seconds")
	w.last.Seconds = 0.1
	require.ErrorContains(t, k.Admit(t.Context()), "its check own fails: exit code 1")
}

// Tasks come first: a check that succeeds is not repeated while they run, but one that fails is.
func TestBesideTasks(t *testing.T) {
	k := checkerOf(t, time.Minute, Check{Name: "good", Command: "true"}, Check{Name: "bad", Command: "false"})
	k.First(t.Context(), time.Minute)
	for _, w := range k.watched {
		w.next = time.Now().Add(-time.Second)
	}
	before := k.Results()
	k.beginDue(func() bool { return false })
	k.mu.Lock()
	good := k.watched[0].known
	k.mu.Unlock()
	assert.Nil(t, good)
	assert.Eventually(t, func() bool { return k.Results()[1].At.After(before[1].At) }, time.Minute, time.Millisecond)
	assert.Equal(t, before[0], k.Results()[0])
}

// An execution is shared by all who wait for it.
func TestOneExecutionAtATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times")
	k := checkerOf(t, time.Minute, Check{Name: "own", Command: "echo >> " + file + "; sleep 0.2"})
	first, second := k.begin(k.watched[0]), k.begin(k.watched[0])
	assert.Equal(t, first, second)
	<-first
	times, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "\n", string(times))
}

// An execution that cannot be ended keeps the host from tasks, and no other begins until it has ended.
func TestStuck(t *testing.T) {
	k := checkerOf(t, time.Millisecond, Check{Name: "clock"})
	release := make(chan struct{})
	k.Around.Clock = stuckClock(release)
	known := k.begin(k.watched[0])
	<-known
	require.Len(t, k.Failing(), 1)
	assert.Contains(t, k.Failing()[0].Reason, "cannot be ended")
	<-k.begin(k.watched[0])
	assert.Contains(t, k.Failing()[0].Reason, "cannot be ended")
	close(release)
	assert.Eventually(t, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.watched[0].stuck
	}, time.Minute, time.Millisecond)
}
