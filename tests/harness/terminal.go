package harness

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// Terminal is a program in a terminal's foreground. The test types its input.
type Terminal struct {
	*Process
	// Before are the modes that the program found.
	Before        unix.Termios
	master, slave *os.File
	seen          int // how much of the screen was matched so far
}

// StartInTerminal starts a program with a terminal as its stdin, stdout, stderr and controlling
// terminal.
func StartInTerminal(t testing.TB, dir string, env []string, argv ...string) *Terminal {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.SetSize(master, 24, 80))
	p := &Process{Cmd: exec.Command(argv[0], argv[1:]...), t: t, out: newBuffer(), err: newBuffer(), done: make(chan struct{})}
	p.Dir, p.Env = dir, append(env, "TERM=xterm")
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = slave, slave, slave
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = p.err.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		// The slave stays open until here, so that its modes can be inspected.
		_ = slave.Close()
		_ = master.Close()
	})
	x := &Terminal{Process: p, master: master, slave: slave}
	x.Before = x.Modes()
	p.begin()
	return x
}

// Screen returns everything shown so far.
func (x *Terminal) Screen() string { return x.Stderr() }

// Type types text.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	_, err := x.master.WriteString(text)
	require.NoError(x.t, err)
}

// Expect waits until the screen shows a match after everything matched before.
func (x *Terminal) Expect(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile("(?s)" + pattern)
	found := ""
	Eventually(x.t, "the screen shows "+pattern, func() bool {
		rest := x.Screen()[x.seen:]
		at := re.FindStringIndex(rest)
		if at == nil {
			return false
		}
		found = rest[at[0]:at[1]]
		x.seen += at[1]
		return true
	})
	return found
}

// Shown waits until the screen shows text anywhere.
func (x *Terminal) Shown(text string) {
	x.t.Helper()
	Eventually(x.t, "the screen shows "+text, func() bool { return strings.Contains(x.Screen(), text) })
}

// Resize changes the size of the terminal.
func (x *Terminal) Resize(rows, columns int) {
	x.t.Helper()
	require.NoError(x.t, pty.SetSize(x.master, rows, columns))
}

// Modes returns the terminal's modes.
func (x *Terminal) Modes() unix.Termios {
	x.t.Helper()
	modes, err := pty.Modes(x.slave)
	require.NoError(x.t, err)
	return *modes
}
