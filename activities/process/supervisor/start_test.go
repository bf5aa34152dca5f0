package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

func TestStart(t *testing.T) {
	// The supervisor inherits a lifeline, and must not pass it on.
	h := newHost(t, func(r *role) { r.Lifeline = true })

	t.Run("exit codes and signals", func(t *testing.T) {
		for i, c := range []struct {
			script string
			code   int
		}{
			{"exit 0", 0}, {"exit 7", 7}, {"exit 255", 255},
			{"kill -TERM $$", -15}, {"kill -KILL $$", -9}, {"kill -ABRT $$", -6},
		} {
			task := fmt.Sprintf("code-%d", i)
			before := BootNanos()
			p := h.sh(task, 0, c.script)
			require.WithinDuration(t, time.Now(), p.Started, patience)
			e := h.wait(task, 0)
			require.Equal(t, c.code, e.Code, c.script)
			require.Equal(t, Exit{Code: c.code, Ended: e.Ended, BootNanos: e.BootNanos, Usage: e.Usage}, e)
			require.Greater(t, e.BootNanos, before)
			require.LessOrEqual(t, e.BootNanos, BootNanos())
			require.Equal(t, e, h.wait(task, 0), "reading an exit does not consume it")
		}
	})

	t.Run("surroundings", func(t *testing.T) {
		r := h.request("surroundings", 0, `pwd; readlink /proc/self/fd/0; env; ps -o sid=,pgid=,pid= -p $$; exec >&2; echo err`)
		r.Command.Env = append(r.Command.Env, "A=b", CookieVar+"=stale")
		h.launch(r)
		require.Zero(t, h.wait("surroundings", 0).Code)
		lines := strings.Split(strings.TrimSpace(must.Read(t, r.Command.Stdout)), "\n")
		require.Equal(t, h.dir, lines[0])
		require.Equal(t, "/dev/null", lines[1])
		require.Contains(t, lines, "A=b")
		cookies := 0
		for _, l := range lines {
			if strings.HasPrefix(l, CookieVar+"=") {
				cookies++
				require.Equal(t, CookieVar+"="+h.instance+"/"+runHash(testRun)+"/0/surroundings/0", l)
			}
			require.NotContains(t, l, "CLUSTERRUN_SUPERVISOR")
		}
		require.Equal(t, 1, cookies)
		ids := strings.Fields(lines[len(lines)-1])
		require.Len(t, ids, 3)
		require.Equal(t, ids[0], ids[1], "a session and a group of its own")
		require.Equal(t, ids[0], ids[2])
		require.Equal(t, "err\n", must.Read(t, r.Command.Stderr))
	})

	t.Run("output is appended", func(t *testing.T) {
		r := h.request("append", 0, "echo new")
		require.NoError(t, os.MkdirAll(r.Command.LogDir, 0o755))
		require.NoError(t, os.WriteFile(r.Command.Stdout, []byte("old\n"), 0o644))
		r.Command.Stderr = "/dev/null"
		h.launch(r)
		h.wait("append", 0)
		require.Equal(t, "old\nnew\n", must.Read(t, r.Command.Stdout))
	})

	t.Run("no descriptors but three", func(t *testing.T) {
		r := h.request("fds", 0, "")
		r.Command.Path, r.Command.Args = "/bin/ls", []string{"ls", "-1", "/proc/self/fd"}
		h.launch(r)
		h.wait("fds", 0)
		require.Equal(t, "0\n1\n2\n3\n", must.Read(t, r.Command.Stdout), "the last one is of ls itself")
	})

	t.Run("no signal is blocked", func(t *testing.T) {
		r := h.request("signals", 0, "")
		r.Command.Path, r.Command.Args = "/bin/cat", []string{"cat", "/proc/self/status"}
		h.launch(r)
		h.wait("signals", 0)
		raw := must.Get(os.ReadFile(r.Command.Stdout))(t)
		require.Regexp(t, `SigBlk:\s0{16}\n`, string(raw))
		// The supervisor needs SIGCHLD and ignores SIGPIPE; a task must do neither. Two internal
		// glibc signals stay as our parent left them.
		ignored := regexp.MustCompile(`SigIgn:\s([0-9a-f]{16})\n`).FindStringSubmatch(string(raw))
		require.Len(t, ignored, 2)
		mask := must.Get(strconv.ParseUint(ignored[1], 16, 64))(t)
		require.Zero(t, mask&^(1<<31|1<<32), ignored[1])
	})

	t.Run("rusage", func(t *testing.T) {
		h.sh("rusage", 0, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
		e := h.wait("rusage", 0)
		require.Positive(t, e.User)
		require.Greater(t, e.MaxRSS, int64(256<<10))
	})
}

func TestStartErrors(t *testing.T) {
	h := newHost(t, nil)
	write := func(name, text string, mode os.FileMode) string {
		path := h.file(name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	plain := write("plain", "echo hi\n", 0o644)
	noMagic := write("no-magic", "echo hi\n", 0o755)
	badInterpreter := write("script", "#!/nowhere/python3 -u\n", 0o755)
	carriage := write("crlf", "#!/bin/sh\r\n", 0o755)
	blocked := write("blocked", "", 0o644)

	for i, c := range []struct {
		change func(*Command)
		code   int
		text   string
	}{
		{func(c *Command) { c.Path = "/nowhere/x" }, 127, "cannot execute /nowhere/x: no such file or directory"},
		{func(c *Command) { c.Path = plain }, 126, "permission denied"},
		{func(c *Command) { c.Path = h.dir }, 126, "permission denied"},
		{func(c *Command) { c.Path = noMagic }, 126, "starts with #!"},
		{func(c *Command) { c.Path = badInterpreter }, 127, "its interpreter /nowhere/python3 does not exist"},
		{func(c *Command) { c.Path = carriage }, 127, "its first line ends with a carriage return"},
		{func(c *Command) { c.Args = append(c.Args, strings.Repeat("x", 200<<10)) }, 126, "argument list too long"},
		{func(c *Command) { c.Dir = "/nowhere" }, 126, "working directory /nowhere: no such file"},
		{func(c *Command) { c.Dir = blocked }, 126, "not a directory"},
		{func(c *Command) { c.LogDir = filepath.Join(blocked, "logs") }, 126, "making the log directory " + blocked},
		{func(c *Command) { c.Stdout = "/nowhere/out.log" }, 126, "opening /nowhere/out.log: no such file"},
	} {
		task := fmt.Sprintf("bad-%d", i)
		r := h.request(task, 0, "true")
		c.change(&r.Command)
		p := h.launch(r)
		require.NotNil(t, p.Exit, c.text)
		assert.Equal(t, c.code, p.Exit.Code, c.text)
		assert.Contains(t, p.Exit.StartError, c.text)
		assert.NotZero(t, p.Exit.BootNanos)
		assert.Equal(t, *p.Exit, h.wait(task, 0))
		// The failed start counts as a process, so the next number needs a grant.
		_, err := h.client.Start(h.ctx(), h.request(task, 1, "true"))
		require.ErrorIs(t, err, ErrNotGranted)
	}

	for _, bad := range []func(*StartRequest){
		func(r *StartRequest) { r.Command.Path = "sh" },
		func(r *StartRequest) { r.Command.Args = nil },
		func(r *StartRequest) { r.Number = -1 },
		func(r *StartRequest) { r.Key.Task = "" },
		func(r *StartRequest) { r.Key.Task = "a b" },
		func(r *StartRequest) { r.Key.Task = "a/b" },
		func(r *StartRequest) { r.Number = 5 },
	} {
		r := h.request("invalid", 0, "true")
		bad(&r)
		_, err := h.client.Start(h.ctx(), r)
		require.ErrorIs(t, err, ErrInvalid)
	}
	h.sh("fine", 0, "exit 3")
	require.Equal(t, 3, h.wait("fine", 0).Code, "all that disturbed nobody")
}

// If a journal cannot be written, or a log directory cannot be made, only that start fails.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	tmpfs := func(t *testing.T, dir string) {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,nr_inodes=64"); err != nil {
			t.Skipf("cannot mount: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	fill := func(t *testing.T, dir string) string {
		path := filepath.Join(dir, "ballast")
		f := must.Get(os.Create(path))(t)
		defer f.Close()
		for size := 4096; size > 0; {
			if _, err := f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
		return path
	}

	t.Run("logs", func(t *testing.T) {
		h := newHost(t, nil)
		dir := h.file("full")
		tmpfs(t, dir)
		for i := 0; ; i++ {
			require.Less(t, i, 1000)
			if os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600) != nil {
				break
			}
		}
		r := h.request("worker-0", 0, "true")
		r.Command.LogDir = filepath.Join(dir, "logs")
		p := h.launch(r)
		require.NotNil(t, p.Exit)
		require.Contains(t, p.Exit.StartError, "making the log directory "+dir)
		require.Equal(t, exitcode.Machinery, p.Exit.Code, "the program is not to blame")
		require.Contains(t, p.Exit.StartError, "no space left on device")
	})

	t.Run("journal", func(t *testing.T) {
		dir := t.TempDir()
		mounted := filepath.Join(dir, "m")
		tmpfs(t, mounted)
		h := newHost(t, func(r *role) {
			r.Dir = filepath.Join(mounted, filepath.Base(t.TempDir())+fmt.Sprint(os.Getpid()), "state")
		})
		h.sh("alive", 0, "echo $$ >$D/pid; exec sleep 1000")
		h.sh("granted", 0, "exit 4")
		h.wait("granted", 0)
		ballast := fill(t, mounted)

		// The journal's last block still holds some records.
		var err error
		last := ""
		for i := 0; err == nil; i++ {
			require.Less(t, i, 100)
			last = fmt.Sprintf("filler-%d", i)
			_, err = h.client.Start(h.ctx(), h.request(last, 0, "touch $D/"+last))
		}
		require.ErrorIs(t, err, ErrJournal)
		require.ErrorContains(t, err, "no space left on device")
		for i := 0; ; i++ {
			require.Less(t, i, 100)
			err = h.client.Grant(h.ctx(), GrantRequest{Key: keyOf(fmt.Sprintf("filler-%d", i)), Fence: Fence{Attempt: 1}})
			if errors.Is(err, ErrJournal) {
				break
			}
			if errors.Is(err, ErrAlive) {
				i--
			} else if errors.Is(err, ErrUnknownProcess) {
				break // one grant did not fit
			} else {
				require.NoError(t, err)
			}
		}
		_, err = h.client.Start(h.ctx(), h.request("refused", 0, "touch $D/ran"))
		require.ErrorIs(t, err, ErrJournal)
		require.False(t, h.exists(last))
		_, err = h.client.Wait(h.ctx(), ref("refused", 0))
		require.ErrorIs(t, err, ErrUnknownProcess)

		// Living processes continue, and their exits are reported.
		require.Equal(t, []string{"alive"}, h.stop(sigTERM, long, "alive"))
		require.Equal(t, -15, h.wait("alive", 0).Code)

		// Once space is available, everything works, and the missing exit is written.
		require.NoError(t, os.Remove(ballast))
		h.sh("refused", 0, "exit 5")
		require.Equal(t, 5, h.wait("refused", 0).Code)
		require.False(t, h.exists("ran"))
		h.kill9()
		h.awaitCount("swept", 1)
		h.start()
		require.Equal(t, -15, h.wait("alive", 0).Code)
		require.False(t, h.wait("alive", 0).Lost)
		require.Equal(t, 5, h.wait("refused", 0).Code)
	})
}

func TestStartIsIdempotent(t *testing.T) {
	h := newHost(t, nil)
	const callers = 32
	var wg sync.WaitGroup
	pids := make([]int, callers)
	for i := range callers {
		wg.Go(func() {
			p, err := h.client.Start(h.ctx(), h.request("worker-0", 0, "echo x >>$D/starts; exec sleep 1000"))
			if assert.NoError(t, err) {
				pids[i] = p.PID
			}
		})
	}
	wg.Wait()
	for _, pid := range pids {
		require.Equal(t, pids[0], pid)
	}
	starts := func() string {
		raw, _ := os.ReadFile(h.file("starts"))
		return string(raw)
	}
	h.until("it has started", func() bool { return starts() != "" })
	h.stop(sigTERM, long)
	h.wait("worker-0", 0)
	require.Equal(t, "x\n", starts())
	p := h.sh("worker-0", 0, "never run")
	require.NotNil(t, p.Exit)
	require.Equal(t, pids[0], p.PID)
	require.Equal(t, ReasonTerminate, p.Exit.Reason)
}

func TestRestartsNeedAGrant(t *testing.T) {
	h := newHost(t, nil)
	start := func(number int, fence Fence, script string) error {
		r := h.request("worker-0", number, script)
		r.Fence = fence
		_, err := h.client.Start(h.ctx(), r)
		return err
	}
	grant := func(number int, fence Fence) error {
		return h.client.Grant(h.ctx(), GrantRequest{Key: keyOf("worker-0"), Fence: fence, Number: number})
	}
	require.ErrorIs(t, grant(0, Fence{Attempt: 1}), ErrUnknownProcess)
	require.NoError(t, start(0, Fence{Attempt: 1}, "echo $$ >$D/up; exec sleep 1000"))
	require.ErrorIs(t, start(1, Fence{Attempt: 1}, "exit 1"), ErrAlive)
	require.ErrorIs(t, start(1, Fence{Launch: 1, Attempt: 1}, "exit 1"), ErrAlive, "also for a later launch")
	require.ErrorIs(t, grant(0, Fence{Launch: 1, Attempt: 1}), ErrAlive)
	h.pidIn("up")
	h.stop(sigTERM, long)
	h.wait("worker-0", 0)

	require.ErrorIs(t, start(1, Fence{Launch: 0, Attempt: 9}, "exit 1"), ErrFenced)
	second := Fence{Launch: 1, Attempt: 2}
	require.NoError(t, start(1, second, "exit 11"), "a later launch needs no grant")
	require.Equal(t, 11, h.wait("worker-0", 1).Code)
	require.ErrorIs(t, start(2, second, "exit 12"), ErrNotGranted)
	require.ErrorIs(t, grant(1, Fence{Launch: 1, Attempt: 1}), ErrFenced)
	require.NoError(t, grant(1, second))
	require.NoError(t, grant(1, second), "again is fine")
	require.NoError(t, start(2, second, "exit 12"))
	require.Equal(t, 12, h.wait("worker-0", 2).Code)

	reply := must.Get(h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: Fence{Launch: 1, Attempt: 3}}))(t)
	require.Len(t, reply.Processes, 3)
	for i, p := range reply.Processes {
		require.Equal(t, i, p.Number)
		require.Equal(t, keyOf("worker-0"), p.Key)
		require.NotNil(t, p.Exit)
	}
	require.Equal(t, []int{0, 1, 1}, []int{reply.Processes[0].Launch, reply.Processes[1].Launch, reply.Processes[2].Launch})
	require.True(t, reply.Processes[1].Granted)
	require.False(t, reply.Processes[2].Granted)

	// The attached commander supersedes the second one in every request.
	require.ErrorIs(t, start(3, second, "exit 1"), ErrFenced)
	require.ErrorIs(t, start(0, second, "exit 1"), ErrFenced, "even for what there is")
	require.ErrorIs(t, grant(2, second), ErrFenced)
	_, err := h.client.Attach(h.ctx(), AttachRequest{Key: keyOf("worker-0"), Fence: second})
	require.ErrorIs(t, err, ErrFenced)
	_, err = h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Fence: &second})
	require.ErrorIs(t, err, ErrFenced)
	_, err = h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Fence: &Fence{}})
	require.ErrorIs(t, err, ErrFenced, "the oldest fence there is survives the wire")
	_, err = h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Fence: &Fence{Launch: 1, Attempt: 3}})
	require.NoError(t, err)
}

// Attempts are counted from 1 in each generation. An earlier generation's attempts do not fence
// requests in a later one, and an old commander cannot stop a new generation. If another execution
// of the workflow continues a launch, it counts its own attempts from 1.
func TestALaterExecutionBeatsAnEarlierOne(t *testing.T) {
	require.True(t, Fence{Attempt: 7}.Less(Fence{Execution: 1, Attempt: 1}))
	require.True(t, Fence{Execution: 1, Attempt: 1}.Less(Fence{Execution: 1, Attempt: 2}))
	require.True(t, Fence{Execution: 3, Attempt: 7}.Less(Fence{Launch: 1, Attempt: 1}))
	require.False(t, Fence{Execution: 1, Attempt: 1}.Less(Fence{Attempt: 7}))
}

func TestFencesAreThoseOfAGeneration(t *testing.T) {
	h := newHost(t, nil)
	start := func(generation int, fence Fence) runkey.Task {
		r := h.request("worker-0", 0, fmt.Sprintf("echo $$ >$D/up%d; exec sleep 1000", generation))
		r.Key.Generation, r.Fence = generation, fence
		h.launch(r)
		h.pidIn(fmt.Sprintf("up%d", generation))
		return r.Key
	}
	old, fresh := Fence{Attempt: 7}, Fence{Attempt: 1}
	start(0, old)
	h.stop(sigTERM, long)
	h.wait("worker-0", 0)
	key := start(1, fresh)
	reply := must.Get(h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Grace: long, Fence: &old}))(t)
	require.Empty(t, reply.Tasks)
	reply = must.Get(h.client.Stop(h.ctx(), StopRequest{Run: testRun, Signal: sigTERM, Grace: long, Fence: &fresh, Generation: 1}))(t)
	require.Equal(t, []string{"worker-0"}, reply.Tasks)
	p := must.Get(h.client.Wait(h.ctx(), ProcessRef{Key: key}))(t)
	require.Equal(t, -sigTERM, p.Exit.Code)
}

func TestGenerations(t *testing.T) {
	h := newHost(t, nil)
	start := func(generation int, script string) error {
		r := h.request("worker-0", 0, script)
		r.Key.Generation = generation
		_, err := h.client.Start(h.ctx(), r)
		return err
	}
	require.NoError(t, start(0, "exec sleep 1000"))
	require.ErrorIs(t, start(1, "exit 1"), ErrAlive)
	h.stop(sigKILL, 0)
	h.wait("worker-0", 0)
	require.NoError(t, start(1, "exit 1"), "each generation counts its own processes")
	r := h.request("worker-1", 0, "exit 1")
	_, err := h.client.Start(h.ctx(), r)
	require.ErrorIs(t, err, ErrFenced, "generation 0 is over")
}
