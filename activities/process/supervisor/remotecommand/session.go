package remotecommand

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Executor executes commands on a host.
type Executor struct {
	instance string
	dir      string // a file for each command
	forker   func() *fork.Forker
}

// NewExecutor returns the executor of a side with that state directory, of an instance of a
// supervisor.
func NewExecutor(stateDir, instance string) *Executor {
	return &Executor{instance: instance, dir: filepath.Join(stateDir, "exec"), forker: sync.OnceValue(fork.New)}
}

// Session is the connection of a client that wants a command executed.
type Session struct {
	Start
	// Expire bounds the time in which the client must take the rest of the output.
	Expire func()
	wire   *wire
}

// Accept receives what a client wants.
func Accept(in io.Reader, out io.Writer) (*Session, error) {
	s := &Session{wire: newWire(in, out), Expire: func() {}}
	m, _, err := s.wire.receive(nil)
	if err == nil && m.Start == nil {
		err = errors.New("the first message starts nothing")
	}
	if err != nil {
		return nil, err
	}
	s.Start = *m.Start
	return s, nil
}

// Close tells the client how its command has ended, or that it was not started.
func (s *Session) Close(e End) { _ = s.wire.send(message{End: &e}, nil) }

// drainTakes bounds the wait for the rest of the output when nothing of a command lives.
const drainTakes = time.Second

// Run executes a command. ctx ends with the connection. Run returns when nothing of the command
// is left.
func (e *Executor) Run(ctx context.Context, s *Session, c Command) End {
	task, err := proc.OpenPidfd(c.Task)
	if err != nil {
		return End{Code: exitcode.Machinery, Why: taskEnded}
	}
	defer task.Close()
	taskEnds := make(chan struct{})
	go func() {
		if proc.AwaitEnd(task) {
			close(taskEnds)
		}
	}()
	p, err := e.start(c, s.Terminal)
	if err != nil {
		end := End{Code: exitcode.NotExecutable, Why: err.Error()}
		if failed, ok := errors.AsType[*fault.Start](err); ok {
			end.Code = failed.Code
		}
		return end
	}
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	in := newInflow()
	var copies sync.WaitGroup
	for name, f := range p.outputs {
		copies.Go(func() { s.copyOut(name, f, gone) })
	}
	if s.wire.send(message{Started: true}, nil) != nil {
		gone()
	}
	go s.listen(p, in, gone)
	go s.feed(p, in)

	var end End
	select {
	case <-p.exited:
	case <-taskEnds:
		end.Why = taskEnded
	case <-ctx.Done():
	}
	select {
	case <-p.exited: // by itself, at the same moment
		end.Why = ""
	default:
	}
	end.Code = p.finish()
	if end.Why != "" {
		end.Code = exitcode.Machinery
	}
	s.Expire()
	in.close()
	if p.terminal == nil {
		_ = p.stdin.Close()
	}
	drained := time.AfterFunc(drainTakes, p.close)
	copies.Wait()
	drained.Stop()
	p.close()
	return end
}

const taskEnded = "the task has ended"

// copyOut sends an output until it ends.
func (s *Session) copyOut(name stream, f *os.File, gone func()) {
	for buf := make([]byte, maxPiece/2); ; {
		n, err := f.Read(buf)
		if n > 0 && s.wire.send(message{Stream: name}, buf[:n]) != nil {
			gone()
			return
		}
		if err != nil {
			return // of a terminal it is EIO
		}
	}
}

// listen carries out what the client sends, until the connection ends.
func (s *Session) listen(p *process, in *inflow, gone func()) {
	defer gone()
	for buf := make([]byte, maxPiece); ; {
		m, data, err := s.wire.receive(buf)
		switch {
		case err != nil:
			return
		case m.Stream == stdin:
			if !in.add(data) {
				return // more than it may
			}
		case m.EOF:
			in.end()
		case m.Size != nil && p.terminal != nil:
			_ = pty.SetSize(p.terminal, m.Size.Rows, m.Size.Columns)
		case m.Signal != "":
			if n, err := spec.SignalNumber(m.Signal); err == nil {
				p.signal(unix.Signal(n))
			}
		}
	}
}

// endOfInput ends the input of a terminal (VEOF).
const endOfInput = 4

// feed writes stdin. It drops the rest if the command has closed it.
func (s *Session) feed(p *process, in *inflow) {
	for {
		data, more := in.next()
		if len(data) > 0 {
			_, _ = p.stdin.Write(data)
			in.took(len(data)) // before the client learns of the room
			_ = s.wire.send(message{Taken: len(data)}, nil)
		}
		switch {
		case more:
		case p.terminal != nil:
			_, _ = p.stdin.Write([]byte{endOfInput})
			return
		default:
			_ = p.stdin.Close()
			return
		}
	}
}

// inflow has the bytes of stdin that the command has not taken.
type inflow struct {
	mu    sync.Mutex
	some  *sync.Cond
	data  []byte
	held  int  // bytes in data, and bytes of next that are not taken
	ended bool // nothing follows
}

func newInflow() *inflow {
	f := &inflow{}
	f.some = sync.NewCond(&f.mu)
	return f
}

// add reports whether there was room.
func (f *inflow) add(b []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held+len(b) > window {
		return false
	}
	f.held += len(b)
	f.data = append(f.data, b...)
	f.some.Signal()
	return true
}

func (f *inflow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.some.Signal()
}

func (f *inflow) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data, f.ended = nil, true
	f.some.Signal()
}

// next waits for bytes, and reports whether more may follow.
func (f *inflow) next() (data []byte, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.data) == 0 && !f.ended {
		f.some.Wait()
	}
	data, f.data = f.data, nil
	return data, !f.ended
}

func (f *inflow) took(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held -= n
}
