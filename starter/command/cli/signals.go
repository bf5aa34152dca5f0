package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// signalsVariable names the signals that stop a run, as with torchrun.
const signalsVariable = "TORCHELASTIC_SIGNALS_TO_HANDLE"

// Interrupts are the signals by which a person, or the system, wants us to end,
// where signalsVariable does not say otherwise.
var Interrupts = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// InterruptsOf reads the value of signalsVariable. What is no signal, or cannot be
// handled, is a problem and is left out.
func InterruptsOf(value string) (signals []syscall.Signal, problems []string) {
	if strings.TrimSpace(value) == "" {
		return Interrupts, nil
	}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		n, err := spec.SignalNumber(name)
		s := syscall.Signal(n)
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case s == syscall.SIGKILL, s == syscall.SIGSTOP:
			problems = append(problems, fmt.Sprintf("%q cannot be handled by any program; leave it out", name))
		case s == syscall.SIGURG, s == syscall.SIGCHLD:
			problems = append(problems, fmt.Sprintf("%q is used by clusterrun itself; leave it out", name))
		case !slices.Contains(signals, s):
			signals = append(signals, s)
		}
	}
	return signals, problems
}

// InterruptSignals returns those that stop a run of this command: the given ones, or those
// that signalsVariable names.
func InterruptSignals(a *App, signals []syscall.Signal) []syscall.Signal {
	if signals == nil {
		var problems []string
		signals, problems = InterruptsOf(os.Getenv(signalsVariable))
		for _, p := range problems {
			a.Say("%s: %s", signalsVariable, p)
		}
	}
	var names []string
	for _, s := range signals {
		names = append(names, spec.SignalName(int(s)))
	}
	a.Logger().Info("these signals stop the run", "signals", strings.Join(names, ","))
	return signals
}

// ListenForSignals catches these signals, ignored before or not, until stop is called, and SIGPIPE: with
// nobody reading our output, the run has lost whom it was for, and without this the write
// would kill us in the middle. The channel is for sending, too. From here on nobody
// waits for what is said to be read, or a signal would.
func ListenForSignals(a *App, stopping []syscall.Signal) (signals chan os.Signal, stop func()) {
	a.Printer.SetAside()
	c := make(chan os.Signal, 8)
	for _, s := range stopping {
		signal.Notify(c, s)
	}
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	go func() {
		for s := range broken {
			// A server that was killed breaks pipes as well, and is not whom we write for.
			if !nobodyReads(os.Stdout) && !nobodyReads(os.Stderr) {
				continue
			}
			select {
			case c <- s:
			default: // there are more already than anybody needs
			}
		}
	}()
	return c, func() {
		signal.Stop(c)
		signal.Stop(broken)
		close(broken)
	}
}

// nobodyReads reports whether a pipe or a socket has lost its other end.
func nobodyReads(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// EndedBy returns a context that ends with SIGTERM or SIGINT. The next one has its usual
// effect, whatever the command is waiting for.
func EndedBy(ctx context.Context) (context.Context, func()) {
	var signals []os.Signal
	for _, s := range NotIgnored([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT}) {
		signals = append(signals, s)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// NotIgnored leaves out what whoever started us has us ignore: nohup SIGHUP, and a
// shell without job control, for what ends in &, SIGINT and SIGQUIT. Go programs
// only learn of SIGHUP and SIGINT; so SIGQUIT goes with SIGINT.
func NotIgnored(signals []syscall.Signal) []syscall.Signal {
	background := signal.Ignored(syscall.SIGINT)
	if background {
		signal.Ignore(syscall.SIGQUIT)
	}
	return slices.DeleteFunc(slices.Clone(signals), func(s syscall.Signal) bool {
		return signal.Ignored(s) || background && s == syscall.SIGQUIT
	})
}

// NotIgnoredByTorchrun is like meant, but torchrun handles SIGINT and SIGQUIT in the background too.
func NotIgnoredByTorchrun(signals []syscall.Signal) []syscall.Signal {
	return slices.DeleteFunc(slices.Clone(signals), func(s syscall.Signal) bool {
		return s != syscall.SIGINT && s != syscall.SIGQUIT && signal.Ignored(s)
	})
}

// CodeOfSignal returns the exit code of a command that a signal ended.
func CodeOfSignal(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return exitcode.OfSignal(int(n))
	}
	return exitcode.Interrupted
}

// NameOfSignal is "SIGTERM".
func NameOfSignal(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return spec.SignalName(int(n))
	}
	return s.String()
}

// Interruption counts the signals of one run: the first asks it to stop, the
// second kills it, and after the third we do not wait any longer.
type Interruption struct {
	First os.Signal
	Count int
	Last  time.Time
}

// SameSignal is how long the same signal again is taken for the same: timeout(1)
// sends it to its child and then to the child's whole group.
const SameSignal = 100 * time.Millisecond

// Add takes a signal and returns how many there were; 0 says that this one does not
// count. A broken pipe is noticed at every write, and counts once.
func (i *Interruption) Add(s os.Signal) int {
	now := time.Now()
	if s == syscall.SIGPIPE && i.Count > 0 || i.Count == 1 && s == i.First && now.Sub(i.Last) < SameSignal {
		return 0
	}
	i.Last = now
	if i.First == nil {
		i.First = s
	}
	i.Count++
	return i.Count
}
