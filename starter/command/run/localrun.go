package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/starter/homeworker"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// workerStop limits the wait for the host worker after the run has ended.
	workerStop = 10 * time.Second
)

// localRun is a run on this machine, with its private host worker, its output and the signals to
// this command.
type localRun struct {
	*cli.App
	runOptions
	spec *spec.RunSpec
	id   string // generated unless the options name it

	queue string // private to the run

	dir     *rundir.Dir
	server  cli.Target
	client  client.Client
	worker  *worker.HostWorker    // not changed after start, because other goroutines stop it
	hosts   *remotehosts.Hosts    // the other hosts, or nil if all tasks are on this machine
	agents  agentsOf              // zero unless agents meet
	archive *shipped.Archive      // files that the run ships; may be nil
	source  *sourcecode.Gathering // the source code; may be nil
	run     *starter.Run
	output  *output

	signals     chan os.Signal
	std         worker.StandardFiles
	interrupted cli.Interruption
	passing     chan os.Signal // signals for the processes
	asked       bool           // whether the server was asked to start the run and may have done so
	stopAsked   atomic.Bool    // set at the first signal
	alone       sync.Once      // for stopAlone
	troubled    atomic.Bool    // whether the server does not answer or the run is stuck
	broken      atomic.Bool    // whether output of other hosts is missing here
	late        chan struct{}  // closed by giveUp
	giveUp      func()         // called if a run that was stopped here does not end in time
	owner       *owner         // program that the run is part of; may be nil
}

// ending is the outcome of waiting for a run.
type ending struct {
	result *spec.RunResult
	err    error
	exits  map[string]spec.Exit // by task; set if result is nil
}

// closed reports whether the run is known to have ended on the server.
func (e ending) closed() bool {
	return e.result != nil || starter.IsError[*starter.TerminatedError](e.err)
}

// code returns the run's exit code.
func (e ending) code() int {
	switch {
	case e.result == nil:
		return cli.CodeOf(e.err)
	case e.result.Verdict == spec.VerdictSucceeded:
		return exitcode.OK
	}
	return max(e.result.ExitCode, 1)
}

// runHere runs a cluster on this machine and reports its end.
func runHere(ctx context.Context, a *cli.App, s *spec.RunSpec, o runOptions) error {
	o.stopping = cli.InterruptSignals(a, o.stopping)
	caught := cli.NotIgnored
	if o.torchrun {
		caught = cli.NotIgnoredByTorchrun
	}
	signals, stopListening := cli.ListenForSignals(a, caught(o.stopping))
	defer stopListening()
	passing, stopPassing := catchPassed(o.stopping)
	defer stopPassing()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &localRun{
		App: a, runOptions: o, spec: s, id: cmp.Or(o.id, starter.NewID(s.Name)), signals: signals, passing: passing, late: make(chan struct{}),
	}
	l.giveUp = sync.OnceFunc(func() { close(l.late) })
	l.source = specs.WorkTree(ctx, s)
	var err error
	if l.archive, err = specs.Pack(ctx, a, s); err != nil {
		return err
	}
	defer l.archive.Close()
	if l.std, err = openStandardFiles(a, o, signals); err != nil {
		return err
	}
	defer l.std.Terminal.GiveBack()
	a.NoStatus = a.NoStatus || directOutput(s) || o.foreground != "" // programs would overwrite the status line
	if l.owner, err = listenToOwner(a, o, signals); err != nil {
		return err
	}
	if err := l.start(ctx); err != nil {
		l.abort()
		if l.owner.isGone() {
			return nil
		}
		return err
	}
	abandoned := cli.EndAbandoned(ctx, a, l.client, l.server)
	l.owner.serve(ctx, l.run)
	return l.conclude(l.supervise(ctx), abandoned)
}

// endedEarly returns the error for a run that was stopped by a signal before it started.
func endedEarly(s os.Signal) error {
	return &cli.ExitError{Code: cli.CodeOfSignal(s), Cause: fmt.Errorf("got %s before the run was started", cli.NameOfSignal(s))}
}

// start brings everything up. The first signal cancels it, unless the server has already started the
// run, which supervise then stops.
func (l *localRun) start(ctx context.Context) (err error) {
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := cancelBySignal(l.App, l.signals, cancel)
	defer func() {
		switch s := stop(); {
		case s != nil && err == nil:
			l.signals <- s
		case s != nil:
			err = endedEarly(s)
		}
	}()
	if err := cli.FullDisk(l.Global.StateDir); err != nil {
		return err
	}
	parent := l.RunsDir()
	if l.meeting != nil {
		if err := l.agents.meet(starting, l.App, l.spec, l.meeting, func(ctx context.Context) (net.Conn, error) { return l.server.Conn(ctx) }); err != nil {
			return err
		}
		if l.agents.joined != nil {
			sweepHosts(l.App)
			parent = hostsDir(l.App) // the run belongs to another agent
		}
	}
	if l.dir, err = rundir.Create(parent); err != nil {
		return fmt.Errorf("state directory (choose another with --state-dir): %w", err)
	}
	if l.agents.joined != nil {
		return l.takePart(ctx, starting)
	}
	if l.archive != nil {
		// The private host worker will look for it in that directory.
		if err := shipped.Open(l.dir.Path).Put(l.archive.Archive, l.archive.Reader()); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	l.queue = newQueue(l.spec, l.runOptions)
	if err := l.connect(ctx, starting); err != nil {
		return err
	}
	if err := cli.FindEarlier(starting, l.client, l.spec); err != nil {
		return err
	}
	if err := l.shipToHosts(starting); err != nil {
		return err
	}
	// The record must exist before the run does, so that other commands can end the run if this
	// process is killed.
	record := rundir.Record{Server: l.server.Options, Embedded: l.server.Embedded, Queue: l.queue, RunID: l.id, PID: os.Getpid(), Started: time.Now()}
	if err := l.dir.Save(record); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	start := starter.Options{ID: l.id, IsNew: l.runOptions.id == "", Queue: l.queue, Torchrun: l.torchrun, Source: l.source, Sweep: l.sweep, Resume: l.resume, Started: l.started}
	if l.hosts == nil && l.meeting == nil {
		start.Host, _ = os.Hostname() // otherwise the run records its hosts
	}
	earlier := func() {}
	if l.resume == nil { // otherwise it is the same sweep
		earlier = cli.Earlier(starting, l.App, l.client, l.runOptions.id)
	}
	if starting.Err() != nil {
		return starting.Err()
	}
	l.run, err = l.worker.HomeWorker.Start(starting, l.client, l.spec, start)
	if l.asked = l.run != nil || mayHaveStarted(err); err != nil {
		return err
	}
	earlier()
	spare := ""
	if l.hosts != nil {
		spare = filepath.Join(l.dir.Path, "output")
	}
	if l.output, err = show(l.App, l.run, l.spec, l.runOptions, spare); err != nil {
		return err
	}
	l.output.showUnkept(l.worker.Supervisor)
	if err := l.agents.start(ctx, l.App, l.run, l.spec, l.server, l.queue, l.meeting); err != nil {
		return err
	}
	l.copyOutput()
	l.sendStdin()
	return l.lendTerminal()
}

// mayHaveStarted reports whether the server may have accepted a start that failed with err.
func mayHaveStarted(err error) bool {
	return servererror.IsTransient(err) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

// newQueue returns a name for the run's queue.
func newQueue(s *spec.RunSpec, o runOptions) string {
	id := strings.ToLower(rand.Text()[:16])
	pinned := func(t spec.Task) bool { return t.Address != "" }
	switch {
	case o.meeting != nil:
		return spec.AgentsQueue(id)
	case o.others != nil || slices.ContainsFunc(s.TaskList(), pinned):
		return spec.PrivateQueue(id)
	}
	return spec.LocalQueue(id)
}

// lendTerminal gives the terminal, if any, to the foreground task.
func (l *localRun) lendTerminal() error {
	t := l.std.Terminal
	if t == nil {
		return nil
	}
	if !l.quiet {
		l.Say("%s", l.Color.Dim(fmt.Sprintf("%s has this terminal; press Ctrl-] three times to stop the run", l.foreground)))
		l.Printer.Flush()
	}
	return t.Lend(func(s os.Signal) bool { return slices.Contains(l.stopping, s.(syscall.Signal)) })
}

// connect finds the server, and starts the other hosts, if any, and the host worker.
func (l *localRun) connect(ctx, starting context.Context) error {
	deadline := time.Now().Add(cli.BringUpBound)
	for {
		s, err := l.BringUp(starting)
		if err != nil {
			return err
		}
		l.server = s
		if err := l.startHosts(starting); err != nil {
			return err
		}
		options, began := l.workerOptions(l.queue), time.Now()
		options.Owned = true
		if l.others.HasThisMachine() {
			options.Advertise = cmp.Or(ownAddress(l.hosts.Facts()), options.Advertise)
		}
		l.worker, err = worker.StartServed(starting, homeworker.Of(l.Global.StateDir, s.Options), options, l.std, l.workerDied)
		if err == nil {
			cli.Keep(ctx, l.App, s)
			l.client, err = connect.Lazy(s.Options, l.Logger())
			return err
		}
		if !starter.IsError[*homeworker.UnreachedError](err) || !s.MayHaveExited(began) || starting.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// workerOptions returns this machine's host worker options.
func (l *localRun) workerOptions(queue string) workers.Options {
	w := workers.Options{
		StateDir: l.dir.Path, Queue: queue, SoleRun: l.sweep == nil, LogRoot: l.LogsDir(), Server: l.server.Options, Debug: l.Debug(),
		OwnersOutput: !l.quiet && l.std.Given(), Foreground: l.foreground, Stdin: l.stdin,
	}
	l.agents.describe(&w, l.spec, l.meeting)
	return w
}

// supervise waits until the run has ended, handling signals.
func (l *localRun) supervise(ctx context.Context) ending {
	ended := make(chan ending, 1)
	waiting, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	go func() {
		result, err := l.worker.HomeWorker.Wait(waiting, l.run, l.trouble)
		ended <- ending{result: result, err: err}
	}()
	go l.watchDisks(waiting)
	go passSignals(waiting, l.App, l.run, l.agents.host(), l.passing)
	go pruneOldLogs(l.App)
	exited := l.worker.Exited
	lost := l.hosts.Lost()
	for {
		select {
		case end := <-ended:
			return end
		case s := <-l.signals:
			if l.signal(ctx, s) > 2 {
				return ending{err: &cli.ExitError{Code: cli.CodeOfSignal(l.interrupted.First), Cause: fmt.Errorf("leaving run %s; its host worker stops what is still running", l.id)}}
			}
		case <-exited:
			if l.agents.left {
				return l.hasLeft()
			}
			if err := l.worker.Err(); err != nil {
				return l.withoutWorker(ctx, err)
			}
			// The host worker had waited briefly for the run to end before it exited.
			exited = nil
			time.AfterFunc(lastMoment, l.giveUp)
		case err := <-lost:
			l.lostHost(err)
		case err := <-l.agents.headLost:
			return ending{err: &cli.ExitError{
				Code:  exitcode.Machinery,
				Cause: fmt.Errorf("lost the agent at %s, which manages run %s (%w); stopping the processes on this host", l.server, l.id, err),
			}}
		case <-l.late:
			return l.leftBehind()
		}
	}
}

// workerDied reports that a supervisor has died and is being replaced.
func (l *localRun) workerDied(err error) {
	l.Say("the host worker died (%v); starting another to find out what happened to its processes", err)
}

// withoutWorker terminates the run, which lost its host worker, and returns the outcome.
func (l *localRun) withoutWorker(ctx context.Context, err error) ending {
	asked, done := context.WithTimeout(ctx, killAnswer)
	defer done()
	_ = l.run.Terminate(asked, "its host worker died")
	return ending{err: fmt.Errorf("run %s: %w", l.id, err)}
}

// trouble reports that the server does not answer or that the run is stuck. If err is nil, it
// reports that the trouble is over.
func (l *localRun) trouble(err error) {
	l.troubled.Store(err != nil)
	switch {
	case err == nil:
		if l.isStopping() {
			l.Say("the problem is resolved")
		} else {
			l.Say("the problem is resolved; the run continues")
		}
		return
	case starter.IsError[*starter.StuckError](err):
		l.Say("run %s makes no progress; its host worker last reported:\n%s", l.id, l.worker.LastWords())
		return
	}
	if l.isStopping() {
		l.Say("%s does not answer", l.server)
	} else {
		l.Say("%s does not answer; the processes continue and wait for it", l.server)
	}
}

// abort cleans up after a failed start.
func (l *localRun) abort() {
	if l.worker != nil {
		how := stopsOf(l.spec, nil)
		how.Recorded = true // the run is terminated
		l.worker.StopAll(how)
	}
	ended := !l.asked
	if l.asked {
		ctx, done := context.WithTimeout(context.Background(), killAnswer)
		defer done()
		if r, err := l.dir.Load(); err == nil {
			ended = cli.TerminateAbandoned(ctx, l.App, r, l.client, l.server) == nil
		}
	}
	l.hosts.Close()
	l.endWorker()
	l.agents.end(l.run, l.client)
	if l.client != nil {
		l.client.Close()
	}
	if l.dir != nil {
		l.leave(ended)
	}
}

func (l *localRun) endWorker() {
	if l.worker == nil {
		return
	}
	bound := workerStop
	if l.worker.IsCut() {
		bound = 0 // the run already had its time, and ends without us
	}
	ctx, done := context.WithTimeout(context.Background(), bound)
	defer done()
	l.worker.Stop(ctx)
}

// cancelBySignal calls cancel at the first signal, until stop is called. stop returns the
// signal, or nil if none came.
func cancelBySignal(a *cli.App, signals <-chan os.Signal, cancel context.CancelFunc) (stop func() os.Signal) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	var came os.Signal
	go func() {
		defer close(ended)
		select {
		case came = <-signals:
			a.Printer.Hurry()
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
