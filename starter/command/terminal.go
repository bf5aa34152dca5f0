package command

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/pty"
)

// lentTerminal is our terminal while it belongs to the task in the foreground.
// The task has one side of a pseudoterminal, and bytes are relayed between the
// other side and our terminal, which interprets nothing meanwhile: keys such as
// Ctrl-C mean to the task what they mean on a terminal of its own.
//
//	keyboard ─► in ─► master ═ slave ─► task (and what others write unprefixed)
//	screen ◄──────── master ═ slave ◄──┘
//	   ▲── lines of other tasks, and ours
type lentTerminal struct {
	in            *os.File
	screen        *screen
	master, slave *os.File
	// keys gets what keys mean to us.
	keys func(os.Signal)

	mu      sync.Mutex
	before  *unix.Termios // the modes to go back to; nil while it is not lent
	signals chan os.Signal
	relayed chan struct{}
	back    sync.Once
}

// newLentTerminal makes the pseudoterminal; lend then begins. screen is where our
// terminal shows things.
func newLentTerminal(in, screenFile *os.File, keys func(os.Signal)) (*lentTerminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	return &lentTerminal{
		in: in, screen: &screen{file: screenFile}, master: master, slave: slave, keys: keys,
		signals: make(chan os.Signal, 8), relayed: make(chan struct{}),
	}, nil
}

// lend gives the terminal to the task. handled are the signals that somebody else
// handles.
func (t *lentTerminal) lend(handled func(os.Signal) bool) error {
	modes, err := pty.Modes(t.in)
	if err != nil {
		return err
	}
	t.resize()
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
	// These would end us with the terminal as it is.
	for _, s := range meant(interrupts) {
		if !handled(s) {
			signal.Notify(t.signals, s)
		}
	}
	t.mu.Lock()
	t.before = modes
	t.mu.Unlock()
	t.own()
	go t.attend()
	go t.readKeys(modes)
	go t.relay()
	return nil
}

// own sets the modes for the task.
func (t *lentTerminal) own() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		t.screen.raw.Store(true)
		_ = pty.SetModes(t.in, pty.Raw(t.before))
	}
}

// disown sets those of before. The modes first: the screen may be busy for as long as
// nobody reads it, and that is not waited for.
func (t *lentTerminal) disown() {
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
		t.screen.finish()
	}()
	select {
	case <-finished:
	case <-time.After(drainBound):
	}
}

// drainBound is how long what the task wrote last may take to get here.
const drainBound = 2 * time.Second

// giveBack shows what the task wrote last, and takes the terminal back. The host
// worker must have ended, or what it holds keeps the end from being seen.
func (t *lentTerminal) giveBack() {
	if t != nil {
		t.back.Do(t.takeBack)
	}
}

func (t *lentTerminal) takeBack() {
	_ = t.slave.Close()
	t.mu.Lock()
	lent := t.before != nil
	t.mu.Unlock()
	if lent {
		select {
		case <-t.relayed:
		case <-time.After(drainBound):
		}
	}
	t.disown()
	signal.Stop(t.signals)
	_ = t.master.Close()
}

// attend does what signals want of the terminal.
func (t *lentTerminal) attend() {
	for s := range t.signals {
		switch s {
		case syscall.SIGWINCH:
			t.resize()
		case syscall.SIGCONT: // the shell had it meanwhile
			t.own()
			t.resize()
		default:
			t.disown()
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		}
	}
}

func (t *lentTerminal) resize() {
	if rows, columns, err := pty.Size(t.in); err == nil {
		_ = pty.SetSize(t.master, rows, columns)
	}
}

// relay shows what the task writes, to the end.
func (t *lentTerminal) relay() {
	defer close(t.relayed)
	buf := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(buf)
		if n > 0 {
			t.screen.relay(buf[:n])
		}
		if err != nil {
			return // EIO: nobody has the other side any more
		}
	}
}

// readKeys passes on what is typed. While no program has the terminal, because it
// is not up yet or has ended, Ctrl-C and Ctrl-\ are for us.
func (t *lentTerminal) readKeys(modes *unix.Termios) {
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
			if s := signalOf(modes, key); s != 0 && t.nobodys() {
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

func (t *lentTerminal) nobodys() bool {
	group, err := pty.Foreground(t.master)
	return err == nil && group == 0
}

func signalOf(modes *unix.Termios, key byte) syscall.Signal {
	switch key {
	case 0: // stands for no key at all
	case modes.Cc[unix.VINTR]:
		return syscall.SIGINT
	case modes.Cc[unix.VQUIT]:
		return syscall.SIGQUIT
	}
	return 0
}

const (
	// escapeKey is Ctrl-], as with telnet, and has to be typed three times within
	// escapeTime: once has a meaning in editors.
	escapeKey   = ']' & 0x1f
	escapeTimes = 3
	escapeTime  = time.Second
)

// escaped stops the run as a signal does, and is none: nobody sent one.
type escaped struct{}

func (escaped) String() string { return "Ctrl-] three times" }
func (escaped) Signal()        {}

// escape looks for the escape among the keys that are typed.
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

// screen is our terminal as an output. While it is lent, it does not begin lines
// at the left by itself, and lines of ours do not go into the middle of one of the
// task's, such as a prompt.
type screen struct {
	file *os.File

	raw  atomic.Bool // while the terminal is lent
	mu   sync.Mutex
	open bool // the task's last line is not finished
}

// Write shows lines that are not the task's.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.raw.Load() {
		return s.file.Write(b)
	}
	lines := bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
	if s.open {
		s.open = false
		lines = append([]byte("\r\n"), lines...)
	}
	if _, err := s.file.Write(lines); err != nil {
		return 0, err
	}
	return len(b), nil
}

// relay shows bytes of the task as they are.
func (s *screen) relay(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = b[len(b)-1] != '\n'
	_, _ = s.file.Write(b)
}

// finish ends the task's last line, after the terminal's modes are back.
func (s *screen) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		_, _ = s.file.WriteString("\n")
		s.open = false
	}
	s.raw.Store(false)
}
