package act

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/remotecommand"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// tty is the terminal of this command, for a command elsewhere.
type tty struct {
	wanted  bool
	in, out *os.File // nil if they are not terminals
	sizes   chan remotecommand.Size
	// endedBy is the signal that ended this command, or 0.
	endedBy atomic.Int32

	mu     sync.Mutex
	before *unix.Termios // nil unless the terminal is in raw mode
	begun  atomic.Bool   // the command is running
	over   bool
}

// newTTY returns the terminal. wanted counts if it is forced; otherwise both stdin and stdout must
// be terminals.
func newTTY(a *cli.App, wanted, forced bool) *tty {
	t := &tty{wanted: wanted, sizes: make(chan remotecommand.Size, 1)}
	if f := tasklog.FileOf(a.In); f != nil && pty.Is(f) {
		t.in = f
	}
	if f := tasklog.FileOf(a.Out); f != nil && pty.Is(f) {
		t.out = f
	}
	if !forced {
		t.wanted = t.in != nil && t.out != nil
	}
	return t
}

// size returns the size of the terminal, or nil if the command gets none.
func (t *tty) size() *remotecommand.Size {
	if !t.wanted {
		return nil
	}
	for _, f := range []*os.File{t.out, t.in} {
		if f == nil {
			continue
		}
		if rows, columns, err := pty.Size(f); err == nil && rows > 0 && columns > 0 {
			return &remotecommand.Size{Rows: rows, Columns: columns}
		}
	}
	return &remotecommand.Size{Rows: 24, Columns: 80}
}

// begin puts the terminal into raw mode: from now on the other terminal does what it usually does.
func (t *tty) begin() {
	t.begun.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted || t.in == nil || t.over || t.before != nil {
		return
	}
	modes, err := pty.Modes(t.in)
	if err == nil && pty.SetModes(t.in, pty.Raw(modes)) == nil {
		t.before = modes
	}
}

// restore restores the modes of the terminal, which stay so.
func (t *tty) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.before != nil {
		_ = pty.SetModes(t.in, t.before)
		t.before = nil
	}
}

// watch passes changes of the size on, and without a terminal SIGINT and SIGQUIT to the command.
// A second one, or any other signal that ends programs, calls end.
func (t *tty) watch(end context.CancelFunc) <-chan string {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH)
	passed := make(chan string, 1)
	go func() {
		asked := false
		for s := range caught {
			switch n := s.(syscall.Signal); {
			case n == syscall.SIGWINCH:
				t.resized()
			case !t.wanted && t.begun.Load() && !asked && (n == syscall.SIGINT || n == syscall.SIGQUIT):
				asked = true
				passed <- spec.SignalName(int(n))
			default:
				t.endedBy.Store(int32(n)) //nolint:gosec // a signal
				end()
			}
		}
	}()
	return passed
}

// resized tells the latest size.
func (t *tty) resized() {
	size := t.size()
	if size == nil {
		return
	}
	select {
	case <-t.sizes:
	default:
	}
	t.sizes <- *size
}
