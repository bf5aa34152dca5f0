package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

func numbers(last int) string {
	var b strings.Builder
	for i := range last {
		b.WriteString(strconv.Itoa(i + 1))
		b.WriteByte('\n')
	}
	return b.String()
}

// begin starts a process, which must succeed, and returns its command.
func (h *host) begin(task, script string, change func(*Command)) Command {
	h.t.Helper()
	r := h.request(task, 0, script)
	if change != nil {
		change(&r.Command)
	}
	p := h.launch(r)
	require.True(h.t, p.Exit == nil || p.Exit.StartError == "", "%+v", p.Exit)
	return r.Command
}

func (h *host) touch(name string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.file(name), nil, 0o600))
}

// No output is lost, however a program reopens its streams.
func TestStreamsThatAreOpenedAgain(t *testing.T) {
	h := newHost(t, nil)
	const steps = "for i in $(seq 20); do echo step $i >&2; done; "
	want := ""
	for i := range 20 {
		want += fmt.Sprintf("step %d\n", i+1)
	}
	for name, c := range map[string]struct{ script, stdout, stderr string }{
		"truncate":   {"for i in $(seq 20); do echo step $i >/dev/stderr; done; echo FATAL >/dev/stderr; echo cleaning up >/dev/stderr", "", want + "FATAL\ncleaning up\n"},
		"tee":        {steps + "echo both | tee /dev/stderr; echo more >&2", "both\n", want + "both\nmore\n"},
		"proc":       {steps + "echo own >/proc/self/fd/2; echo other >/dev/fd/1; echo more", "other\nmore\n", want + "own\n"},
		"dd":         {"echo first; echo second | dd of=/dev/stdout 2>/dev/null; echo third", "first\nsecond\nthird\n", ""},
		"background": {steps + "(setsid sh -c 'echo daemon >/dev/stderr; echo >$D/daemon; exec sleep 1000' &); while ! test -e $D/daemon; do sleep 0.01; done", "", want + "daemon\n"},
	} {
		command := h.begin(name, c.script, nil)
		require.Zero(t, h.wait(name, 0).Code, name)
		assert.Equal(t, c.stdout, must.Read(t, command.Stdout), name)
		assert.Equal(t, c.stderr, must.Read(t, command.Stderr), name)
	}
}

// While the supervisor is stopped, programs wait when their pipes are full. TE-55, TE-56: half a
// million lines arrive, also from a program that buffers them.
func TestOutputWhileTheSupervisorIsStopped(t *testing.T) {
	h := newHost(t, nil)
	const last = 500_000
	c := h.begin("t", fmt.Sprintf("echo $$ >$D/pid; while ! test -e $D/go; do sleep 0.01; done; echo first >&2; echo >$D/writes; seq %d; echo last >&2", last), nil)
	h.pidIn("pid")
	require.NoError(t, h.cmd.Process.Signal(unix.SIGSTOP))
	h.until("it is stopped", func() bool {
		stat, err := proc.ReadStat(h.cmd.Process.Pid)
		return err == nil && stat.State == 'T'
	})
	h.touch("go")
	h.until("it writes", func() bool { return h.exists("writes") })
	require.Empty(t, must.Read(t, c.Stderr))
	require.NoError(t, h.cmd.Process.Signal(unix.SIGCONT))
	require.Zero(t, h.wait("t", 0).Code)
	assert.True(t, must.Read(t, c.Stdout) == numbers(last), "every byte is there once")
	assert.Equal(t, "first\nlast\n", must.Read(t, c.Stderr))
}

// A file may be copied and truncated while it is written, as by logrotate.
func TestAFileThatIsTruncated(t *testing.T) {
	h := newHost(t, nil)
	c := h.begin("t", `echo one; while ! test -e $D/go; do sleep 0.01; done; echo two`, nil)
	h.until("the line is there", func() bool { return must.Read(t, c.Stdout) == "one\n" })
	require.NoError(t, os.Truncate(c.Stdout, 0))
	h.touch("go")
	require.Zero(t, h.wait("t", 0).Code)
	assert.Equal(t, "two\n", must.Read(t, c.Stdout))
}

// A process outside the task holds its pipe. The task's exit does not wait for it, and its output
// is not lost.
func TestAPipeThatOutlivesItsProcess(t *testing.T) {
	h := newHost(t, nil)
	before := h.fds()
	c := h.begin("t", "echo one; echo $$ >$D/pid; while ! test -e $D/go; do sleep 0.01; done; echo two", nil)
	held := must.Get(os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", h.pidIn("pid")), os.O_WRONLY, 0))(t)
	h.touch("go")
	require.Zero(t, h.wait("t", 0).Code)
	require.Equal(t, "one\ntwo\n", must.Read(t, c.Stdout))
	_, err := held.WriteString("three\n")
	require.NoError(t, err)
	h.until("its line is there", func() bool { return must.Read(t, c.Stdout) == "one\ntwo\nthree\n" })
	require.NoError(t, held.Close())
	h.until("all of it is closed", func() bool { return h.fds() <= before+1 }) // the journal stays
}

// smallDisk returns a directory on a small disk.
func smallDisk(h *host) string {
	if os.Geteuid() != 0 {
		h.t.Skip("only root can mount a small disk")
	}
	dir := h.file("disk")
	require.NoError(h.t, os.Mkdir(dir, 0o755))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		h.t.Skip("no small disk can be mounted: ", err)
	}
	h.t.Cleanup(func() { assert.NoError(h.t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// A program waits while the disk is full. Output that still cannot be written is counted, and the
// program continues.
func TestOutputOnAFullDisk(t *testing.T) {
	const last = 200_000 // more than a pipe holds
	disk := func(h *host) (logs, ballast string) {
		dir := smallDisk(h)
		ballast = filepath.Join(dir, "ballast")
		require.NoError(h.t, os.WriteFile(ballast, make([]byte, 3900<<10), 0o600))
		return filepath.Join(dir, "logs"), ballast
	}
	begin := func(h *host, logs, script string) Command {
		return h.begin("t", script, func(c *Command) {
			c.LogDir = logs
			c.Stdout, c.Stderr = filepath.Join(logs, "stdout.log"), ""
		})
	}

	t.Run("for a moment", func(t *testing.T) {
		h := newHost(t, nil)
		logs, ballast := disk(h)
		c := begin(h, logs, fmt.Sprintf("seq %d; exit 3", last))
		h.until("the disk is full", func() bool {
			var st unix.Statfs_t
			require.NoError(t, unix.Statfs(logs, &st))
			return st.Bfree == 0
		})
		require.NoError(t, os.Remove(ballast))
		exit := h.wait("t", 0)
		assert.Equal(t, 3, exit.Code)
		assert.Zero(t, exit.Dropped)
		assert.True(t, must.Read(t, c.Stdout) == numbers(last), "nothing is missing")
	})

	t.Run("for long", func(t *testing.T) {
		h := newHost(t, nil)
		logs, ballast := disk(h)
		c := begin(h, logs, fmt.Sprintf("seq %d; echo >$D/full; while ! test -e $D/room; do sleep 0.01; done; echo again; exit 3", last))
		h.until("the disk is full", func() bool { return h.exists("full") })
		require.NoError(t, os.Remove(ballast))
		h.touch("room")
		exit := h.wait("t", 0)
		assert.Equal(t, 3, exit.Code)
		text, whole := must.Read(t, c.Stdout), numbers(last)+"again\n"
		before, after, found := strings.Cut(text, fmt.Sprintf("clusterrun: %d bytes of this output are missing because they could not be written to this file: no space left on device\n", exit.Dropped))
		require.True(t, found, "the file says what is missing")
		kept := len(whole) - int(exit.Dropped) - len(after)
		require.Positive(t, kept)
		assert.True(t, before == whole[:kept] || before == whole[:kept]+"\n", "what comes before is whole")
		assert.True(t, after == whole[kept+int(exit.Dropped):], "and what comes after")
	})
}

// A side gets all output that does not fit on a full disk.
func TestTheSideTakesWhatIsNotKept(t *testing.T) {
	h := newHost(t, nil)
	disk := smallDisk(h)
	const last = 1_000_000 // more than the disk holds
	c := h.begin("t", fmt.Sprintf("seq %d; exit 3", last), func(c *Command) {
		c.LogDir = disk
		c.Stdout, c.Stderr = filepath.Join(disk, "stdout.log"), ""
	})
	ended := make(chan Exit, 1)
	go func() { ended <- h.wait("t", 0) }()
	var taken strings.Builder
	for {
		got := must.Get(h.client.Unkept(h.ctx()))(t)
		for _, u := range got.Unkept {
			assert.Equal(t, c.Stdout, u.Path)
			taken.Write(u.Data)
		}
		select {
		case exit := <-ended:
			assert.Equal(t, 3, exit.Code)
			assert.Equal(t, int64(taken.Len()), exit.Dropped)
			require.Positive(t, taken.Len())
			assert.True(t, must.Read(t, c.Stdout)+taken.String() == numbers(last), "nothing is missing")
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A file size limit (ulimit -f) kills neither the supervisor nor its tasks.
func TestOutputBeyondALimitOfFileSize(t *testing.T) {
	h := newHost(t, func(r *role) { r.Files = "-f 2048" })
	h.begin("t", "head -c 3000000 /dev/zero; exit 3", nil)
	exit := h.wait("t", 0)
	assert.Equal(t, 3, exit.Code)
	assert.Positive(t, exit.Dropped)
}
