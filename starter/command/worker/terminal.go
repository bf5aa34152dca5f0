package worker

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// ForegroundTTY is our terminal while it belongs to the foreground task. The task has one side of
// a pseudoterminal, and bytes are relayed between the other side and our terminal, which is in
// raw mode, so that keys such as Ctrl-C reach the task as on its own terminal.
//
//	keyboard ─► in ─► master ═ slave ─► task (and what others write unprefixed)
//	screen ◄──────── master ═ slave ◄──┘
//	   ▲── lines of other tasks, and ours
type ForegroundTTY struct {
	in            *os.File
	Screen        *cli.Screen
	master, Slave *os.File
	// keys receives the signals of keys that are meant for this command.
	keys func(os.Signal)

	mu      sync.Mutex
	before  *unix.Termios // the modes to restore; nil while it is not lent
	signals chan os.Signal
	relayed chan struct{}
	back    sync.Once
}

// NewForegroundTTY creates the pseudoterminal. Lend connects it to our terminal, which shows its
// output on screenFile.
func NewForegroundTTY(in, screenFile *os.File, keys func(os.Signal)) (*ForegroundTTY, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	return &ForegroundTTY{
		in: in, Screen: &cli.Screen{File: screenFile}, master: master, Slave: slave, keys: keys,
		signals: make(chan os.Signal, 8), relayed: make(chan struct{}),
	}, nil
}

// Lend gives the terminal to the task. handled reports whether other code handles a signal.
func (t *ForegroundTTY) Lend(handled func(os.Signal) bool) error {
	modes, err := pty.Modes(t.in)
	if err != nil {
		return err
	}
	t.resize()
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
	// These would kill this process without restoring the terminal.
	for _, s := range cli.NotIgnored(cli.Interrupts) {
		if !handled(s) {
			signal.Notify(t.signals, s)
		}
	}
	t.mu.Lock()
	t.before = modes
	t.mu.Unlock()
	t.setRaw()
	go t.handleSignals()
	go t.readKeys(modes)
	go t.relay()
	return nil
}

// setRaw sets the modes for the task.
func (t *ForegroundTTY) setRaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		t.Screen.Raw.Store(true)
		_ = pty.SetModes(t.in, pty.Raw(t.before))
	}
}

// restore restores the terminal's modes before it finishes the screen, which may block until its
// output is read. restore waits no longer than drainBound for the screen.
func (t *ForegroundTTY) restore() {
	t.mu.Lock()
	before := t.before
	t.before = nil
	if before != nil {
		_ = pty.SetModes(t.in, before)
	}
	t.mu.Unlock()
	if before == nil {
		return
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		t.Screen.Finish()
	}()
	select {
	case <-finished:
	case <-time.After(drainBound):
	}
}

// drainBound limits the wait for the task's last output.
const drainBound = 2 * time.Second

// GiveBack shows the task's last output and takes the terminal back. The host worker must have
// exited, because the output does not end while its processes hold the other side.
func (t *ForegroundTTY) GiveBack() {
	if t != nil {
		t.back.Do(t.takeBack)
	}
}

func (t *ForegroundTTY) takeBack() {
	_ = t.Slave.Close()
	t.mu.Lock()
	lent := t.before != nil
	t.mu.Unlock()
	if lent {
		select {
		case <-t.relayed:
		case <-time.After(drainBound):
		}
	}
	t.restore()
	signal.Stop(t.signals)
	_ = t.master.Close()
}

// handleSignals adapts the terminal to signals.
func (t *ForegroundTTY) handleSignals() {
	for s := range t.signals {
		switch s {
		case syscall.SIGWINCH:
			t.resize()
		case syscall.SIGCONT: // the shell may have changed the modes in the meantime
			t.setRaw()
			t.resize()
		default:
			t.restore()
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		}
	}
}

func (t *ForegroundTTY) resize() {
	if rows, columns, err := pty.Size(t.in); err == nil {
		_ = pty.SetSize(t.master, rows, columns)
	}
}

// relay shows the task's output until it ends.
func (t *ForegroundTTY) relay() {
	defer close(t.relayed)
	buf := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(buf)
		if n > 0 {
			t.Screen.Relay(buf[:n])
		}
		if err != nil {
			return // EIO: the other side is closed
		}
	}
}

// readKeys passes on typed keys. Before a program has started in the terminal, and after it has
// exited, Ctrl-C and Ctrl-\ are meant for this command.
func (t *ForegroundTTY) readKeys(modes *unix.Termios) {
	var leave escape
	buf := make([]byte, 4<<10)
	for {
		n, err := t.in.Read(buf)
		typed := buf[:0]
		for _, key := range buf[:n] {
			if leave.typed(key, time.Now()) {
				t.keys(escaped{})
				continue
			}
			if s := signalOf(modes, key); s != 0 && t.isFree() {
				t.keys(s)
				continue
			}
			typed = append(typed, key)
		}
		if len(typed) > 0 {
			if _, err := t.master.Write(typed); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (t *ForegroundTTY) isFree() bool {
	group, err := pty.Foreground(t.master)
	return err == nil && group == 0
}

func signalOf(modes *unix.Termios, key byte) syscall.Signal {
	switch key {
	case 0: // no key is set
	case modes.Cc[unix.VINTR]:
		return syscall.SIGINT
	case modes.Cc[unix.VQUIT]:
		return syscall.SIGQUIT
	}
	return 0
}

const (
	// escapeKey is Ctrl-], like telnet's. It must be typed three times within escapeTime,
	// because a single one has a meaning in editors.
	escapeKey   = ']' & 0x1f
	escapeTimes = 3
	escapeTime  = time.Second
)

// escaped stands for a signal that stops the run, although none was sent.
type escaped struct{}

func (escaped) String() string { return "Ctrl-] three times" }
func (escaped) Signal()        {}

// escape detects the escape among the typed keys.
type escape struct {
	count int
	first time.Time
}

// typed reports whether the key completes the escape.
func (e *escape) typed(key byte, now time.Time) bool {
	switch {
	case key != escapeKey:
		e.count = 0
		return false
	case e.count == 0 || now.Sub(e.first) > escapeTime:
		e.count, e.first = 0, now
	}
	e.count++
	if e.count < escapeTimes {
		return false
	}
	e.count = 0
	return true
}
