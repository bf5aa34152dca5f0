package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/starter/homeworker"
	"github.com/clusterrun/clusterrun/workers"
)

// HostWorker is a private host worker: a supervisor in a separate process and session, with a
// lifeline to this process. When this process exits, for whatever reason, the supervisor detects
// that through the lifeline and stops everything. Ctrl-C in our terminal does not reach it.
type HostWorker struct {
	options  workers.Options
	std      StandardFiles // for tasks
	Lifeline *os.File      // our end
	Theirs   *os.File      // kept for successors
	died     func(error)   // called before a supervisor that died is replaced
	// HomeWorker is the side, and Supervisor leads to the supervisor. Both are nil if the side
	// is a child of the supervisor.
	HomeWorker *homeworker.Link
	Supervisor *supervisor.Client
	// Exited is closed when the supervisor has exited and is not replaced.
	Exited chan struct{}
	err    error // set when Exited is closed

	cut, told atomic.Bool // by Cut and by StopAll
	process   atomic.Pointer[os.Process]
}

// maxSuccessors is the maximum number of supervisors that replace dead ones.
const maxSuccessors = 3

// StartHostWorker starts a host worker. If its supervisor dies, it calls died and starts another,
// which reports the processes' exits.
func StartHostWorker(o workers.Options, std StandardFiles, died func(error)) (*HostWorker, error) {
	w, err := newHostWorker(o, std, died)
	if err != nil {
		return nil, err
	}
	cmd, err := w.start(nil, nil)
	return w.keep(cmd, err)
}

// StartServed is like [StartHostWorker] with a new state directory, and with the home's home worker
// as the first supervisor's side.
func StartServed(ctx context.Context, home homeworker.Home, o workers.Options, std StandardFiles, died func(error)) (*HostWorker, error) {
	o.Instance = supervisor.NewInstance()
	side, err := home.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w, err := newHostWorker(o, std, died)
	if err != nil {
		return nil, err
	}
	ours, link, err := supervisor.SocketPair()
	if err != nil {
		return w.keep(nil, err)
	}
	defer link.Close()
	w.Supervisor, w.HomeWorker = supervisor.NewClient(ours), side
	cmd, err := serve(side, workers.Supervised{Options: o, Environ: os.Environ(), Log: w.log()}, func(socket *os.File) (*exec.Cmd, error) {
		return w.start(socket, link)
	})
	return w.keep(cmd, err)
}

// serve makes the home worker a supervisor's side. start starts the supervisor with a socket.
func serve(side *homeworker.Link, s workers.Supervised, start func(socket *os.File) (*exec.Cmd, error)) (*exec.Cmd, error) {
	toSide, theirs, err := supervisor.SocketPair()
	if err != nil {
		return nil, err
	}
	defer toSide.Close()
	defer theirs.Close()
	socket, err := toSide.(*net.UnixConn).File()
	if err != nil {
		return nil, err
	}
	cmd, err := start(theirs)
	if err != nil {
		socket.Close()
		return nil, err
	}
	s.PID = cmd.Process.Pid
	side.Serve(s, socket)
	return cmd, nil
}

func newHostWorker(o workers.Options, std StandardFiles, died func(error)) (*HostWorker, error) {
	theirs, ours, err := os.Pipe()
	return &HostWorker{options: o, std: std, Lifeline: ours, Theirs: theirs, died: died, Exited: make(chan struct{})}, err
}

// start starts a supervisor: the first one, or a successor to one that died. A successor uses
// the same state directory and starts its own side.
func (w *HostWorker) start(side, link *os.File) (*exec.Cmd, error) {
	settings, err := workers.Supervisor(w.options)
	if err != nil {
		return nil, err
	}
	if side != nil {
		settings.SidePID = w.HomeWorker.PID()
	}
	cmd, program, err := settings.Command(w.files(side, link))
	if err != nil {
		return nil, err
	}
	defer program.Close()
	log, err := os.OpenFile(w.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the host worker: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the host worker: %w", err)
	}
	w.process.Store(cmd.Process)
	return cmd, nil
}

// keep replaces the supervisor that was started when it dies, unless starting it failed with err.
func (w *HostWorker) keep(cmd *exec.Cmd, err error) (*HostWorker, error) {
	if err != nil {
		w.Lifeline.Close()
		w.Theirs.Close()
		return nil, err
	}
	go func() {
		defer close(w.Exited)
		for successors := 0; ; successors++ {
			err := cmd.Wait()
			if w.cut.Load() || w.told.Load() {
				return
			}
			if successors < maxSuccessors {
				w.died(err)
				if cmd, err = w.start(nil, nil); err == nil {
					continue
				}
			}
			w.err = fmt.Errorf("the host worker keeps dying (%w):\n%s", err, w.LastWords())
			return
		}
	}()
	return w, nil
}

// Err waits until the host worker has exited. It returns an error if the host worker exited without
// being asked to.
func (w *HostWorker) Err() error {
	<-w.Exited
	return w.err
}

// files returns what the supervisor inherits, including those of our standard files that tasks
// can get.
func (w *HostWorker) files(side, link *os.File) supervise.Files {
	f, o := supervise.Files{Lifeline: w.Theirs, Side: side, Link: link}, w.options
	if o.Foreground != "" || o.Stdin != "" {
		f.Stdin = w.std.In
	}
	if o.Foreground != "" || o.OwnersOutput {
		f.Stdout, f.Stderr = w.std.Out, w.std.Err
	}
	return f
}

// Cut cuts the supervisor's lifeline, so that it stops all processes with a short grace period
// and exits. This does not require a server.
func (w *HostWorker) Cut() {
	if !w.cut.Swap(true) {
		w.Lifeline.Close()
	}
}

// StopAll makes the supervisor stop all processes in the given way and exit, or configures how it
// stops them later. This also does not require a server.
func (w *HostWorker) StopAll(how supervisor.StopAll) {
	if how.Recorded && w.HomeWorker != nil {
		w.HomeWorker.Leave()
	}
	tell := func() {
		line, err := json.Marshal(how)
		if err == nil {
			_, err = w.Lifeline.Write(append(line, '\n'))
		}
		if err != nil {
			w.Cut()
		}
	}
	if how.Later || !w.told.Swap(true) {
		tell()
	}
}

// Suspended returns the supervisor if it is stopped by a signal, or nil. Killing it then lets a
// successor, or its guard, stop the processes.
func (w *HostWorker) Suspended() *os.Process {
	p := w.process.Load()
	if p == nil {
		return nil
	}
	if s, err := proc.ReadStat(p.Pid); err != nil || s.State != 'T' {
		return nil
	}
	return p
}

func (w *HostWorker) IsCut() bool  { return w.cut.Load() }
func (w *HostWorker) IsTold() bool { return w.told.Load() }

// Stop cuts the worker's lifeline and waits until it exits.
func (w *HostWorker) Stop(ctx context.Context) {
	w.Cut()
	select {
	case <-w.Exited:
	case <-ctx.Done():
	}
	w.Theirs.Close()
}

func (w *HostWorker) log() string { return filepath.Join(w.options.StateDir, "worker.log") }

// LastWords returns the log's last lines, for an error.
func (w *HostWorker) LastWords() string {
	b, err := os.ReadFile(w.log())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	const most = 8
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// StandardFiles are the stdin, stdout and stderr that we pass to tasks.
type StandardFiles struct {
	In       *os.File // nil if no task gets it
	Out, Err *os.File
	Terminal *ForegroundTTY // nil if the files belong to this process
}

// Given reports whether there is an output for programs.
func (std StandardFiles) Given() bool { return std.Out != nil && std.Err != nil }
