package hostcheck

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func checkerOf(t *testing.T, timeout time.Duration, checks ...Check) *Checker {
	return New(t.Context(), Config{
		Checks: checks, Timeout: timeout, Every: time.Millisecond, Log: zaptest.NewLogger(t), Instance: rand.Text(),
	})
}

// resultOf returns a command's result.
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

// The end of a flood of output is kept.
func TestFlood(t *testing.T) {
	got := resultOf(t, time.Minute, "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 9")
	assert.Regexp(t, `^exit code 9: …x+ the end$`, got.Failed)
	assert.LessOrEqual(t, len(got.Failed), maxReason)
}

// A hanging check is killed with all that it started, even what left its group and holds its
// output.
func TestHang(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\nsleep 600 & wait"), 0o700))
	got := resultOf(t, 300*time.Millisecond, "trap '' TERM HUP; echo waiting; setsid "+name+" & "+name)
	assert.Equal(t, "it did not finish within 300ms: waiting", got.Failed)
	assert.Empty(t, running(t, name))
}

// What a successful check leaves running is killed.
func TestLeftBehind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stays")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\nsleep 600 & wait"), 0o700))
	got := resultOf(t, time.Minute, "setsid "+name+" & echo $!")
	assert.Empty(t, got.Failed)
	assert.Empty(t, running(t, name))
}

// What an earlier side left running is killed before the first command.
func TestSweep(t *testing.T) {
	k := checkerOf(t, time.Minute, Check{Name: "own", Command: "true"})
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), variable+"="+k.Instance+"/earlier")
	require.NoError(t, left.Start())
	ended := make(chan error)
	go func() { ended <- left.Wait() }()
	k.First(t.Context(), time.Minute)
	assert.ErrorContains(t, <-ended, "killed")
}

// running returns the processes with text in their command lines.
func running(t *testing.T, text string) (found []int) {
	pids := must.Get(proc.PIDs())(t)
	for _, pid := range pids {
		line, _ := os.ReadFile(filepath.Join(proc.Dir(pid), "cmdline"))
		if bytes.Contains(line, []byte(text)) {
			found = append(found, pid)
		}
	}
	return found
}

// A failing check is repeated, and the host is fit once it succeeds.
func TestLifted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "there")
	k := checkerOf(t, time.Minute, Check{Name: "own", Command: "test -e " + file})
	assert.Equal(t, []fleet.FailedCheck{{Check: "own", Reason: "it has not finished yet"}}, k.Failing())
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

// When the host takes tasks, a recent result counts, and an older one only if the check is slow.
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

// While tasks run, only failing checks are repeated.
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

// All callers that wait for an execution share it.
func TestOneExecutionAtATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times")
	k := checkerOf(t, time.Minute, Check{Name: "own", Command: "echo >> " + file + "; sleep 0.2"})
	first, second := k.begin(k.watched[0]), k.begin(k.watched[0])
	assert.Equal(t, first, second)
	<-first
	assert.Equal(t, "\n", must.Read(t, file))
}

// An execution that cannot be killed keeps the host from tasks, and the next starts only after it
// exits.
func TestStuck(t *testing.T) {
	k := checkerOf(t, time.Millisecond, Check{Name: "clock"})
	release := make(chan struct{})
	k.Around.Clock = stuckClock(release)
	known := k.begin(k.watched[0])
	<-known
	require.Len(t, k.Failing(), 1)
	assert.Contains(t, k.Failing()[0].Reason, "cannot be killed")
	<-k.begin(k.watched[0])
	assert.Contains(t, k.Failing()[0].Reason, "cannot be killed")
	close(release)
	assert.Eventually(t, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.watched[0].stuck
	}, time.Minute, time.Millisecond)
}

func TestParse(t *testing.T) {
	for given, want := range map[string]Check{
		"disk": {Name: "disk"}, "disk:5GiB": {Name: "disk", Limit: "5GiB"}, "clock:500ms": {Name: "clock", Limit: "500ms"},
		"nfs=test -w /mnt/a=b": {Name: "nfs", Command: "test -w /mnt/a=b"}, "x=disk:1": {Name: "x", Command: "disk:1"},
	} {
		got, err := Parse(given)
		require.NoError(t, err, given)
		assert.Equal(t, want, got, given)
	}
	for given, why := range map[string]string{
		"": "is not one of disk, shm, clock", "nfs": `"nfs" is not one of`, "disk:": "the limit of disk", "disk:many": "the limit of disk", "clock:-1s": "use a time",
		"disk=true": "is reserved", "none=true": "is reserved", "a b=true": "is not a name",
		"=true": "is not a name", "x=": "x has no command", "x= \t": "x has no command", "x=\x00": "null byte", "x=" + strings.Repeat("y", maxCommand+1): "longer than 4096",
		strings.Repeat("n", 33) + "=true": "is not a name", "n\x1b[31m=true": "is not a name",
	} {
		_, err := Parse(given)
		assert.ErrorContains(t, err, why, given)
	}
}

func TestParseAll(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  []Check
		err   string
	}{
		{nil, []Check{{Name: "disk"}, {Name: "clock"}}, ""},
		{[]string{"none"}, nil, ""},
		{[]string{"disk"}, []Check{{Name: "disk"}, {Name: "clock"}}, ""},
		{[]string{"clock:1s"}, []Check{{Name: "disk"}, {Name: "clock", Limit: "1s"}}, ""},
		{[]string{"disk:1GiB", "a=true"}, []Check{{Name: "disk", Limit: "1GiB"}, {Name: "clock"}, {Name: "a", Command: "true"}}, ""},
		{[]string{"none", "a=true"}, []Check{{Name: "a", Command: "true"}}, ""},
		{[]string{"a=true", "a=false"}, nil, "a is given twice"},
		{[]string{"disk:1GiB", "disk:2GiB"}, nil, "disk is given twice"},
		{strings.Fields("x=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1"), nil, "there are 18 checks, but at most 16 are allowed"},
	} {
		got, err := ParseAll(c.given)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
}

type clockFunc = func(context.Context) (ahead, doubt time.Duration, err error)

func clockOf(ahead, doubt time.Duration, err error) clockFunc {
	return func(context.Context) (time.Duration, time.Duration, error) { return ahead, doubt, err }
}

func stuckClock(release chan struct{}) clockFunc {
	return func(context.Context) (time.Duration, time.Duration, error) {
		<-release
		return 0, 0, nil
	}
}

// said returns an error's message, or "".
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, disk([]string{dir, filepath.Join(dir, "not", "made")}, "1KiB"))
	assert.ErrorContains(t, disk([]string{dir}, "8000000GiB"), "MiB left, less than 8000000GiB")
	assert.ErrorContains(t, disk([]string{"/dev/null/x"}, "1KiB"), "not a directory")
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		clock clockFunc
		want  string
	}{
		{clockOf(900*time.Millisecond, 0, nil), ""},
		{clockOf(2*time.Second, 1500*time.Millisecond, nil), ""},
		{clockOf(2*time.Second, time.Millisecond, nil), "the clock is 2s behind the server's, more than 1s"},
		{clockOf(-time.Minute, time.Millisecond, nil), "the clock is 1m0s ahead of the server's, more than 1s"},
		{clockOf(time.Hour, 0, errors.New("the server is away")), ""},
		{nil, ""},
	} {
		assert.Equal(t, c.want, said(clock(t.Context(), c.clock, "1s")))
	}
}
