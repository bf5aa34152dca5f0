package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workers"
)

// hostWorker is a private host worker: a supervisor in a process and session of
// its own, tied to us by a pipe. However we end, it sees the pipe's end and
// stops everything; Ctrl-C in our terminal does not reach it.
type hostWorker struct {
	options  workers.Options
	std      standardFiles // for tasks
	lifeline *os.File      // our end
	theirs   *os.File      // kept for successors
	cmd      *exec.Cmd
	// side is in this process; nil: it is a child of the supervisor.
	side *workers.OwnersSide
	// exited gets the end of each supervisor we started.
	exited           chan error
	gone             chan struct{} // closed by cut
	told             chan struct{} // closed by stopAll
	cutting, telling sync.Once
}

func startHostWorker(o workers.Options, std standardFiles) (*hostWorker, error) {
	return newHostWorker(o, std, func(w *hostWorker) error { return w.start(nil) })
}

// startWithSide starts a host worker on a new state directory whose side is in this process.
func startWithSide(ctx context.Context, o workers.Options, std standardFiles) (*hostWorker, error) {
	return newHostWorker(o, std, func(w *hostWorker) (err error) {
		w.side, err = workers.NewOwnersSide(ctx, o, w.log(), func(o workers.Options, side *os.File) (pid int, err error) {
			w.options = o
			if err := w.start(side); err != nil {
				return 0, err
			}
			return w.cmd.Process.Pid, nil
		})
		return err
	})
}

func newHostWorker(o workers.Options, std standardFiles, start func(*hostWorker) error) (*hostWorker, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w := &hostWorker{options: o, std: std, lifeline: ours, theirs: theirs, exited: make(chan error, 1), gone: make(chan struct{}), told: make(chan struct{})}
	if err := start(w); err != nil {
		ours.Close()
		theirs.Close()
		return nil, err
	}
	return w, nil
}

// start executes a supervisor: the first, or after one has died a successor on
// the same state directory, which starts its side itself.
func (w *hostWorker) start(side *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	options, err := json.Marshal(w.options)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(w.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log of the host worker: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(self, "supervise")
	if side != nil {
		cmd.Args = append(cmd.Args, "--"+ownersSideFlag)
	}
	cmd.Env = append(os.Environ(), optionsVariable+"="+string(options))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w.theirs, w.std.in, w.std.out, w.std.err, side} // from lifelineFD on
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the host worker: %w", err)
	}
	w.cmd = cmd
	go func() { w.exited <- cmd.Wait() }()
	return nil
}

// cut tells the supervisor that its owner is gone: it stops all processes with
// a short grace and ends. It needs no server for that.
func (w *hostWorker) cut() {
	w.cutting.Do(func() {
		close(w.gone)
		w.lifeline.Close()
	})
}

// stopAll tells the supervisor to stop all processes in that way and to end, or how to stop
// them later. It needs no server for that either.
func (w *hostWorker) stopAll(how supervisor.StopAll) {
	if how.Recorded && w.side != nil {
		w.side.Leave()
	}
	tell := func() {
		line, err := json.Marshal(how)
		if err == nil {
			_, err = w.lifeline.Write(append(line, '\n'))
		}
		if err != nil {
			w.cut()
		}
	}
	if how.Later {
		tell()
		return
	}
	w.telling.Do(func() {
		close(w.told)
		tell()
	})
}

func (w *hostWorker) isCut() bool  { return isClosed(w.gone) }
func (w *hostWorker) isTold() bool { return isClosed(w.told) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stop cuts the worker and waits for its end.
func (w *hostWorker) stop(ctx context.Context) {
	w.cut()
	select {
	case <-w.exited:
	case <-ctx.Done():
	}
	w.theirs.Close()
	if w.side != nil {
		w.side.Leave()
		w.side.Wait(ctx)
	}
}

func (w *hostWorker) log() string { return filepath.Join(w.options.StateDir, "worker.log") }

// lastWords returns the last lines of the log, for an error.
func (w *hostWorker) lastWords() string {
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
