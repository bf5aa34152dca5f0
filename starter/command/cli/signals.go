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
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// signalsVariable names the signals that stop a run, like torchrun's variable.
const signalsVariable = "TORCHELASTIC_SIGNALS_TO_HANDLE"

// Interrupts are the signals that stop a run if signalsVariable is unset.
var Interrupts = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// InterruptsOf parses the value of signalsVariable. It omits unknown signals and those that
// cannot be handled, and returns a problem for each.
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
			problems = append(problems, fmt.Sprintf("programs cannot handle %q; omit it", name))
		case s == syscall.SIGURG, s == syscall.SIGCHLD:
			problems = append(problems, fmt.Sprintf("clusterrun itself uses %q; omit it", name))
		case !slices.Contains(signals, s):
			signals = append(signals, s)
		}
	}
	return signals, problems
}

// InterruptSignals returns the signals that stop this command's run. If signals is nil,
// signalsVariable names them.
func InterruptSignals(a *App, signals []syscall.Signal) []syscall.Signal {
	if signals == nil {
		var problems []string
		signals, problems = InterruptsOf(os.Getenv(signalsVariable))
		for _, p := range problems {
			a.Say("%s: %s", signalsVariable, p)
		}
	}
	names := list.Of(signals, func(s syscall.Signal) string { return spec.SignalName(int(s)) })
	a.Logger().Info("these signals stop the run", "signals", strings.Join(names, ","))
	return signals
}

// ListenForSignals catches the signals, including ignored ones, until stop is called. It also
// catches SIGPIPE, because if our output is no longer read, the run has lost its user, and an
// uncaught SIGPIPE would kill this process in the middle of a write. The caller may also send to
// the channel. From this call on, messages are written without waiting for their reader, which
// would delay signals.
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
			// A server that is killed also causes SIGPIPE, but only our own output counts.
			if !nobodyReads(os.Stdout) && !nobodyReads(os.Stderr) {
				continue
			}
			select {
			case c <- s:
			default: // the channel holds more signals than are needed
			}
		}
	}()
	return c, func() {
		signal.Stop(c)
		signal.Stop(broken)
		close(broken)
	}
}

// nobodyReads reports whether the other end of a pipe or a socket is closed.
func nobodyReads(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// EndedBy returns a context that is canceled on SIGTERM or SIGINT. A second signal takes its
// default effect.
func EndedBy(ctx context.Context) (context.Context, func()) {
	signals := list.Of(NotIgnored([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT}), func(s syscall.Signal) os.Signal { return s })
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// NotIgnored returns the signals that were not ignored when this process was started. nohup ignores
// SIGHUP; a shell without job control ignores SIGINT and SIGQUIT for commands started with &. Go
// programs can only detect ignored SIGHUP and SIGINT, so SIGQUIT counts as ignored if SIGINT is.
func NotIgnored(signals []syscall.Signal) []syscall.Signal {
	background := signal.Ignored(syscall.SIGINT)
	if background {
		signal.Ignore(syscall.SIGQUIT)
	}
	return slices.DeleteFunc(slices.Clone(signals), func(s syscall.Signal) bool {
		return signal.Ignored(s) || background && s == syscall.SIGQUIT
	})
}

// NotIgnoredByTorchrun is like [NotIgnored], but keeps SIGINT and SIGQUIT, which torchrun
// handles even in the background.
func NotIgnoredByTorchrun(signals []syscall.Signal) []syscall.Signal {
	return slices.DeleteFunc(slices.Clone(signals), func(s syscall.Signal) bool {
		return s != syscall.SIGINT && s != syscall.SIGQUIT && signal.Ignored(s)
	})
}

// CodeOfSignal returns the exit code of a command killed by a signal.
func CodeOfSignal(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return exitcode.OfSignal(int(n))
	}
	return exitcode.Interrupted
}

// NameOfSignal returns a signal's name, such as "SIGTERM".
func NameOfSignal(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return spec.SignalName(int(n))
	}
	return s.String()
}

// Interruption counts one run's signals. The first signal asks the run to stop, the second kills
// it, and after the third the command no longer waits.
type Interruption struct {
	First os.Signal
	Count int
	Last  time.Time
}

// SameSignal is the interval within which a repeated signal counts as the same one, because
// timeout(1) sends a signal to its child and then to the child's whole group.
const SameSignal = 100 * time.Millisecond

// Add counts a signal and returns the number so far, or 0 if the signal does not count. SIGPIPE
// counts only once, because every write to a broken pipe causes it.
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
