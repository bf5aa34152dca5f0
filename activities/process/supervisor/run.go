package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/detach"
)

// Config configures [Run].
type Config struct {
	// State is the opened state directory; the caller closes it after Run.
	State *State
	// Side is the command line of the Temporal-facing side. The default is this program's own.
	Side []string
	// Program is the file of the side's program, which may have been opened with O_PATH. The
	// default is this program.
	Program *os.File
	// OwnersSide, if set, is a socket to a side in another process, which received the other end
	// from the owner. The supervisor starts a side only when this socket closes. It kills that
	// process, OwnersSidePID, if it stays stopped by a signal.
	OwnersSide    *os.File
	OwnersSidePID int
	// OwnersLink, if set, is a socket to the owner, which may also use the [API].
	OwnersLink *os.File
	// SideEnv is added to this process's environment for the side.
	SideEnv []string
	// Lifeline, if set, is a pipe from the owner. When it closes, the owner is gone. The owner may
	// write a [StopAll] before that.
	Lifeline *os.File
	// Owner holds the owner's files that tasks can use.
	Owner Owner
	// OrphanGrace is the grace when the owner is gone. The default is 2 s.
	OrphanGrace time.Duration
	// When ctx is canceled, LongestGrace limits each process's own grace ([Command.Stop]). The
	// default is [DefaultLongestGrace].
	LongestGrace time.Duration
	// KillBound is how long to wait for a process after SIGKILL. The default is 10 s.
	KillBound time.Duration
	// PortsLapse is how long ports are held for a run that does not start a process. The default is
	// 60 s.
	PortsLapse time.Duration
	// SoleRun reports whether nothing more is started once a run is released.
	SoleRun bool
	// NoCgroups disables cgroups.
	NoCgroups bool
	Log       *slog.Logger
	// Ready is called once, when the side is started.
	Ready func()
	// Serving is called each time a side reports that it serves; see [API].
	Serving func()
	// Ignored is the result of [Ignored] from before the program changed the handling of any
	// signal. The default is the current result.
	Ignored []os.Signal
	// Upgrade, if set, allows upgrades. In that case, Lifeline and Owner must not be set.
	Upgrade *Upgrade

	killNow <-chan struct{} // closed to shut down without graces; see ObeySignals
}

const (
	// DefaultKillBound is the default of [Config]'s KillBound.
	DefaultKillBound = 10 * time.Second
	// DefaultLongestGrace is the default of [Config]'s LongestGrace. It leaves time to report the
	// tasks' exits before a service manager kills the service, after 60 s or more.
	DefaultLongestGrace = 50 * time.Second
)

const (
	defaultOrphanGrace = 2 * time.Second
	defaultPortsLapse  = time.Minute
)

func (c *Config) setDefaults() {
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&c.OrphanGrace, defaultOrphanGrace},
		{&c.LongestGrace, DefaultLongestGrace},
		{&c.KillBound, DefaultKillBound},
		{&c.PortsLapse, defaultPortsLapse},
	} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if c.Ignored == nil {
		c.Ignored = Ignored()
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
}

// Ignored returns the signals that were ignored when this program was started, for example by
// nohup, or by & in a non-interactive shell. Tasks do not inherit this. A Go program can detect
// only whether SIGHUP and SIGINT are ignored, so Ignored assumes that SIGQUIT is ignored if SIGINT
// is, and ignores it.
func Ignored() (ignored []os.Signal) {
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT)
	}
	for _, sig := range []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGTERM} {
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
}

// Run runs a supervisor until ctx is canceled, the lifeline closes, or the owner requests it on the
// lifeline. It returns once all processes and then the side have exited. After an upgrade to
// another version it returns [ErrOutdated] when no run is left.
//
// While Run runs, it treats all children of this OS process as its own, so nothing else in the
// program may start any, not even os/exec. Run handles only the signals SIGCHLD, SIGPIPE and
// SIGXFSZ.
func Run(ctx context.Context, cfg Config) error { return runWith(ctx, cfg, linux()) }

func runWith(ctx context.Context, cfg Config, k kernel) error {
	if cfg.State == nil {
		return errors.New("supervisor: no state")
	}
	cfg.setDefaults()
	// Tasks' daemons become our children instead of process 1's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	// The supervisor's output may be a pipe to an owner that is gone. SIGPIPE must not kill the
	// supervisor before it cleans up, nor SIGXFSZ if file sizes are limited (ulimit -f). The
	// signals are caught rather than ignored, because tasks would inherit ignored signals.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, unix.SIGPIPE, unix.SIGXFSZ)
	for _, sig := range cfg.Ignored {
		signal.Notify(pipe, sig)
	}
	defer signal.Stop(pipe)

	if err := detach.Seal(); err != nil { // including the lifeline
		return err
	}

	s := newSupervisor(cfg, k)
	defer s.shut()

	var err error
	if s.lifeline, err = watchLifeline(cfg.Lifeline, s.stopLater, s.log); err != nil {
		s.log.Error("The launcher cannot be watched.", "error", err)
	}
	defer s.lifeline.stop()
	gone, told := s.lifeline.news()
	defer s.launcher.closeRelays(gone, cfg.killNow)

	if cfg.OwnersLink != nil {
		conn, err := net.FileConn(cfg.OwnersLink)
		_ = cfg.OwnersLink.Close()
		if err != nil {
			return fmt.Errorf("the socket to the launcher: %w", err)
		}
		s.side.serve(conn)
	}
	started := make(chan error, 1)
	stopSide, sideGone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sideGone)
		s.side.keep(started, stopSide)
	}()
	if err := <-started; err != nil {
		<-sideGone
		return err
	}
	s.log.Info("The supervisor is running.", "state", s.state.dir, "instance", s.state.instance, "cgroups", s.groups.dir != "")
	if cfg.Ready != nil {
		cfg.Ready()
	}

	orphans := Stops{Stop: Stop{int(unix.SIGTERM), cfg.OrphanGrace}}
	var all StopAll
	var how manner = s.ownWay
	ownerGone := true // or requests the same
	outdated := false
	select {
	case <-ctx.Done():
		ownerGone = false
		s.log.Info("The supervisor is shutting down; stopping everything.")
	case <-s.side.outdated:
		outdated, ownerGone = true, false
		s.log.Info("The supervisor is idle and exits because its version differs from the installed program's.")
	case <-gone:
		select {
		case all = <-told: // before it went
		default:
			gone, all.Stops = nil, orphans
		}
		how = all.way
		s.log.Info("The launcher has exited; stopping everything.")
	case all = <-told:
		how = all.way
		s.log.Info("The launcher is stopping everything.")
	}
	s.close(ownerGone, all.Recorded)
	close(stopSide)
	s.endProcesses(how, max(all.Longest(), cfg.LongestGrace), gone, orphans)
	s.guard.stop() // stop it early, because it takes a while until shut can reap it
	s.side.end(sideGone)
	s.side.program.close()
	if outdated {
		return ErrOutdated
	}
	return nil
}

// close refuses new requests and notifies the side.
func (s *supervisor) close(ownerGone, recorded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ownerGone = ownerGone
	s.side.record(recorded)
	if !s.isClosing() {
		close(s.closing)
	}
}

// ownWay returns how a process is stopped when the supervisor is shutting down.
func (s *supervisor) ownWay(p *process) Stop {
	if p.stop.Signal == 0 {
		return Stop{int(unix.SIGTERM), s.cfg.LongestGrace}
	}
	return Stop{p.stop.Signal, min(p.stop.Grace, s.cfg.LongestGrace)}
}

// endProcesses stops all processes as determined by how or, once the owner is gone, by orphans. It
// returns when all of them have ended or were given up. longest is the longest grace.
func (s *supervisor) endProcesses(how manner, longest time.Duration, ownerGone <-chan struct{}, orphans Stops) {
	begun := time.Now()
	all := s.stopper.stopAll(how, begun)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// Processes that are still being started are stopped in the second round.
		s.starts.Wait()
		all = append(all, s.stopper.stopAll(how, begun)...)
		for _, p := range all {
			<-p.done
		}
	}()
	kill := s.cfg.killNow
	// A start that hangs in the kernel cannot be stopped.
	bound := time.NewTimer(longest + 2*s.cfg.KillBound)
	defer bound.Stop()
	for {
		select {
		case <-gone:
			return
		case <-bound.C:
			s.log.Error("Some processes are still running; the supervisor stops waiting.")
			return
		case <-kill:
			s.stopper.stopAll(Stops{Stop: Stop{Signal: int(unix.SIGKILL)}}.way, time.Now())
			kill = nil
		case <-ownerGone:
			s.stopper.stopAll(orphans.way, time.Now())
			ownerGone = nil
		}
	}
}

// stopLater makes the runs' own stops send the owner's signals.
func (s *supervisor) stopLater(how StopAll) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later = how.of
}

// shut closes the supervisor's parts.
func (s *supervisor) shut() {
	s.fork.Close()
	s.guard.end()
	s.reaper.close()
	s.records.Wait()
	s.stopper.close()
	s.mu.Lock()
	runs := make([]*run, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	for _, r := range runs {
		r.ports.Free()
		r.outputs.Close()
	}
	s.groups.close()
	s.fork.Restore()
}
