package supervisor

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// ownerIn returns an owner whose stdin, stdout and stderr are files.
func ownerIn(dir string) Owner {
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			panic(err)
		}
		return f
	}
	return Owner{Stdin: open("in"), Stdout: open("out"), Stderr: open("err")}
}

func TestOwnersDescriptors(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in"), []byte("typed\n"), 0o600))
	h := newHost(t, func(r *role) { r.Owner = dir })
	written := func(name string) string {
		raw := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		require.NoError(t, os.Truncate(filepath.Join(dir, name), 0))
		return string(raw)
	}
	const script = `cat; echo to stdout; echo to stderr >&2; ls -m /proc/self/fd`

	// One stream goes to the owner, the other to its file.
	r := h.request("direct", 0, script)
	r.Command.Stdout = OwnersOutput
	h.launch(r)
	require.Zero(t, h.wait("direct", 0).Code)
	assert.Equal(t, "to stdout\n0, 1, 2, 3\n", written("out"), "stdin is /dev/null, and nothing of the owner's beside")
	assert.Equal(t, "to stderr\n", must.Read(t, r.Command.Stderr))
	assert.Empty(t, written("err"))

	r = h.request("foreground", 0, script)
	r.Command.Foreground = true
	h.launch(r)
	require.Zero(t, h.wait("foreground", 0).Code)
	assert.Equal(t, "typed\nto stdout\n0, 1, 2, 3\n", written("out"))
	assert.Equal(t, "to stderr\n", written("err"))
	assert.NoFileExists(t, r.Command.Stdout)

	_, err := h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM}}})
	require.NoError(t, err)
	require.NoError(t, h.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, h.ended())
	before, after := 0, 0
	_, err = fmt.Sscan(h.lastEvent("descriptors "), &before, &after)
	require.NoError(t, err)
	assert.Equal(t, before-1, after, "the lock is closed, and no copy is left")
}

// Programs expect stdin to block. Processes that share the owner's may expect the opposite.
func TestLentFilesBlock(t *testing.T) {
	doesNotBlock := func(fd int) bool {
		return must.Get(unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0))(t)&unix.O_NONBLOCK != 0
	}
	var pipe, fifo, socket [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC))
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	fifo[0] = must.Get(unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))(t) // without a writer
	socket = must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0))(t)
	for name, fd := range map[string]int{"pipe": pipe[0], "fifo": fifo[0], "socket": socket[0]} {
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		to := must.Get(lent(f))(t)
		defer unix.Close(to)
		assert.False(t, doesNotBlock(to), name)
		assert.Equal(t, name != "socket", doesNotBlock(fd), "%s: a socket has only one description", name)
	}
	_ = unix.Close(pipe[1])
	_ = unix.Close(socket[1])
}

func TestNoOwner(t *testing.T) {
	h := newHost(t, nil)
	r := h.request("direct", 0, "echo lost")
	r.Command.Stdout, r.Command.Stderr = OwnersOutput, OwnersOutput
	h.launch(r)
	assert.Zero(t, h.wait("direct", 0).Code, "as with /dev/null")

	r = h.request("foreground", 0, "true")
	r.Command.Foreground = true
	h.launch(r)
	e := h.wait("foreground", 0)
	assert.Equal(t, exitcode.NotExecutable, e.Code)
	assert.Contains(t, e.StartError, "there is no launcher to provide its stdin")
}

// newOwned returns a host with the test itself as the side.
func newOwned(t *testing.T) *host {
	t.Helper()
	return newHost(t, func(r *role) { r.Lifeline, r.OwnersSide, r.Instance = true, true, NewInstance() })
}

// If the owner dies with its side, the supervisor still has processes. It starts a side to report
// their exits.
func TestTheOwnerDiesWithItsSide(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	require.Zero(t, h.count("side "), "none but the owner's")
	require.NoError(t, h.client.Close())
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("side "))
	require.Equal(t, 1, h.count("closing true"))
	require.Equal(t, "w -15 shutdown", h.lastEvent("exit "))
}

// A living owner's side may exit. The next side takes over its processes.
func TestTheOwnersSideEnds(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	require.NoError(t, h.client.Close())
	h.awaitCount("side ", 1)
	h.connect()
	require.Equal(t, []string{"w"}, h.stop(int(unix.SIGTERM), patience, "w"))
	require.Equal(t, -15, h.wait("w", 0).Code)
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Equal(t, 1, h.count("side "))
}

// Nothing reports to the server while the owner's side is stopped, so the supervisor kills it.
func TestTheOwnersSideStaysStopped(t *testing.T) {
	side := exec.Command("sleep", "1000")
	require.NoError(t, side.Start())
	h := newHost(t, func(r *role) {
		r.Lifeline, r.OwnersSide, r.SidePID, r.Instance = true, true, side.Process.Pid, NewInstance()
	})
	require.NoError(t, side.Process.Signal(unix.SIGSTOP))
	require.Error(t, side.Wait())
	assert.Equal(t, unix.SIGKILL, side.ProcessState.Sys().(syscall.WaitStatus).Signal())
	require.NoError(t, h.client.Close())
	h.awaitCount("side ", 1)
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
}

// A side that leaves has finished reporting, so none replaces it.
func TestTheOwnersSideLeaves(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	require.NoError(t, h.client.Leave(h.ctx()))
	require.NoError(t, h.client.Close())
	require.NoError(t, h.lifeline.Close())
	require.NoError(t, h.ended())
	require.Zero(t, h.count("side "))
}

// An owner that has reported everything as recorded does not have to leave.
func TestTheOwnersSideIsCutOff(t *testing.T) {
	h := newOwned(t)
	h.sh("w", 0, "exec sleep 1000")
	line := must.Get(json.Marshal(StopAll{Stops: Stops{Stop: Stop{Signal: int(unix.SIGTERM), Grace: patience}}, Recorded: true}))(t)
	_, err := h.lifeline.Write(append(line, '\n'))
	require.NoError(t, err)
	<-h.client.Lost()
	require.NoError(t, h.ended())
	require.Zero(t, h.count("side "))
}

// The end of output for the owner is kept in a file.
func TestTheEndOfTheOwnersOutputIsKept(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t, func(r *role) { r.Owner = dir })
	begin := func(task, script string) Command {
		return h.begin(task, script, func(c *Command) {
			c.StdoutEnd, c.StderrEnd = c.Stdout, c.Stderr
			c.Stdout, c.Stderr = OwnersOutput, OwnersOutput
		})
	}
	little := begin("little", "echo to stdout >/dev/stdout; echo FATAL >/dev/stderr; exit 3")
	require.Equal(t, 3, h.wait("little", 0).Code)
	assert.Equal(t, "to stdout\n", must.Read(t, little.StdoutEnd))
	assert.Equal(t, "FATAL\n", must.Read(t, little.StderrEnd))

	const last = 100_000
	much := begin("much", fmt.Sprintf("seq %d", last))
	require.Zero(t, h.wait("much", 0).Code)
	assert.True(t, must.Read(t, dir, "out") == "to stdout\n"+numbers(last), "the owner has all of it")
	assert.NoFileExists(t, much.StderrEnd, "there was none")
	note, rest, _ := strings.Cut(must.Read(t, much.StdoutEnd), "\n")
	assert.Equal(t, "clusterrun: this output was not redirected to a file; its last 64 KiB follow", note)
	assert.True(t, strings.HasSuffix(numbers(last), "\n"+rest), "whole lines")
	assert.Greater(t, len(rest), output.KeptEnd-10)
}

// If the owner's stdout and stderr are the same, they keep their order, and different tasks' lines
// are not mixed, even if written in pieces.
func TestOneOutputOfTheOwner(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out"), nil, 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "out"), filepath.Join(dir, "err")))
	h := newHost(t, func(r *role) { r.Owner = dir })
	const tasks, lines = 4, 200
	var ends []string
	for i := range tasks {
		c := h.begin(fmt.Sprint("t", i), fmt.Sprintf("for i in $(seq %d); do echo %d out $i; echo %d err $i >&2; done", lines, i, i), func(c *Command) {
			c.StdoutEnd, c.StderrEnd = c.Stdout, c.Stderr
			c.Stdout, c.Stderr = OwnersOutput, OwnersOutput
		})
		ends = append(ends, c.StderrEnd)
	}
	for i := range tasks {
		require.Zero(t, h.wait(fmt.Sprint("t", i), 0).Code)
	}
	all := must.Read(t, dir, "out")
	for i := range tasks {
		var want, got strings.Builder
		for n := range lines {
			fmt.Fprintf(&want, "%d out %d\n%d err %d\n", i, n+1, i, n+1)
		}
		for line := range strings.Lines(all) {
			if strings.HasPrefix(line, fmt.Sprint(i, " ")) {
				got.WriteString(line)
			}
		}
		assert.Equal(t, want.String(), got.String())
		assert.Equal(t, want.String(), must.Read(t, ends[i]))
	}
}

// A task that writes to the owner's terminal gets a terminal of the same size, and the end of its
// output is kept.
func TestTheEndOfWhatGoesToATerminalIsKept(t *testing.T) {
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	modes := must.Get(pty.Modes(slave))(t)
	require.NoError(t, pty.SetModes(slave, pty.Raw(modes)))
	require.NoError(t, pty.SetSize(master, 33, 77))
	dir := t.TempDir()
	for _, name := range []string{"out", "err"} {
		require.NoError(t, os.Symlink(slave.Name(), filepath.Join(dir, name)))
	}
	h := newHost(t, func(r *role) { r.Owner = dir })
	const last = 20_000 // more than a terminal holds
	want := "33 77\n" + numbers(last) + "FATAL\n"
	shown := make(chan string)
	go func() {
		text := make([]byte, len(want))
		n, _ := io.ReadFull(master, text)
		shown <- string(text[:n])
	}()
	c := h.begin("t", fmt.Sprintf("test -t 1 && test -t 2 && stty size <&1; seq %d; echo FATAL >/dev/stderr; exit 3", last), func(c *Command) {
		c.StdoutEnd, c.StderrEnd = c.Stdout, c.Stderr
		c.Stdout, c.Stderr = OwnersOutput, OwnersOutput
	})
	require.Equal(t, 3, h.wait("t", 0).Code)
	assert.True(t, <-shown == want, "the terminal shows all of it")
	assert.True(t, strings.HasSuffix(must.Read(t, c.StderrEnd), "\n19999\n20000\nFATAL\n"))
}
