package command

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

// interrupts are the signals by which a person, or the system, wants us to end,
// where signalsVariable does not say otherwise.
var interrupts = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// interruptsOf reads the value of signalsVariable. What is no signal, or cannot be
// handled, is a problem and is left out.
func interruptsOf(value string) (signals []syscall.Signal, problems []string) {
	if strings.TrimSpace(value) == "" {
		return interrupts, nil
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

// interruptSignals returns those that stop a run of this command: the given ones, or those
// that signalsVariable names.
func interruptSignals(a *app, signals []syscall.Signal) []syscall.Signal {
	if signals == nil {
		var problems []string
		signals, problems = interruptsOf(os.Getenv(signalsVariable))
		for _, p := range problems {
			a.say("%s: %s", signalsVariable, p)
		}
	}
	var names []string
	for _, s := range signals {
		names = append(names, spec.SignalName(int(s)))
	}
	a.logger().Info("these signals stop the run", "signals", strings.Join(names, ","))
	return signals
}

// listen catches these signals, ignored before or not, until stop is called, and SIGPIPE: with
// nobody reading our output, the run has lost whom it was for, and without this the write
// would kill us in the middle. The channel is for sending, too. From here on nobody
// waits for what is said to be read, or a signal would.
func listen(a *app, stopping []syscall.Signal) (signals chan os.Signal, stop func()) {
	a.voice.setAside()
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

// endedBy returns a context that ends with SIGTERM or SIGINT. The next one has its usual
// effect, whatever the command is waiting for.
func endedBy(ctx context.Context) (context.Context, func()) {
	var signals []os.Signal
	for _, s := range meant([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT}) {
		signals = append(signals, s)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// meant leaves out what whoever started us has us ignore: nohup SIGHUP, and a
// shell without job control, for what ends in &, SIGINT and SIGQUIT. Go programs
// only learn of SIGHUP and SIGINT; so SIGQUIT goes with SIGINT.
func meant(signals []syscall.Signal) []syscall.Signal {
	background := signal.Ignored(syscall.SIGINT)
	if background {
		signal.Ignore(syscall.SIGQUIT)
	}
	return slices.DeleteFunc(slices.Clone(signals), func(s syscall.Signal) bool {
		return signal.Ignored(s) || background && s == syscall.SIGQUIT
	})
}

// meantForTorchrun is like meant, but torchrun handles SIGINT and SIGQUIT in the background too.
func meantForTorchrun(signals []syscall.Signal) []syscall.Signal {
	return slices.DeleteFunc(slices.Clone(signals), func(s syscall.Signal) bool {
		return s != syscall.SIGINT && s != syscall.SIGQUIT && signal.Ignored(s)
	})
}

// codeOfSignal returns the exit code of a command that a signal ended.
func codeOfSignal(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return exitcode.OfSignal(int(n))
	}
	return exitcode.Interrupted
}

// nameOfSignal is "SIGTERM".
func nameOfSignal(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return spec.SignalName(int(n))
	}
	return s.String()
}

// interruption counts the signals of one run: the first asks it to stop, the
// second kills it, and after the third we do not wait any longer.
type interruption struct {
	first os.Signal
	count int
	last  time.Time
}

// sameSignal is how long the same signal again is taken for the same: timeout(1)
// sends it to its child and then to the child's whole group.
const sameSignal = 100 * time.Millisecond

// add takes a signal and returns how many there were; 0 says that this one does not
// count. A broken pipe is noticed at every write, and counts once.
func (i *interruption) add(s os.Signal) int {
	now := time.Now()
	if s == syscall.SIGPIPE && i.count > 0 || i.count == 1 && s == i.first && now.Sub(i.last) < sameSignal {
		return 0
	}
	i.last = now
	if i.first == nil {
		i.first = s
	}
	i.count++
	return i.count
}

// cancelBySignal has the first signal call cancel, until stop is called. stop returns the signal;
// nil: none came.
func (l *localRun) cancelBySignal(cancel context.CancelFunc) (stop func() os.Signal) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	var came os.Signal
	go func() {
		defer close(ended)
		select {
		case came = <-l.signals:
			l.voice.hurry()
			cancel()
		case <-stopped:
		}
	}()
	return func() os.Signal {
		close(stopped)
		<-ended
		return came
	}
}
