package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/starter/coordinate"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// callGrace is how long a call that runs has to return when the pool is shut down.
	callGrace = time.Second
	// endGrace is how long a process has to end by itself, and endBound all of them
	// with their run.
	endGrace = 3 * time.Second
	endBound = time.Minute
)

// sessions are all that have not ended.
var sessions sync.Map

// endAll ends what this process still has of pools.
func endAll() {
	var ending sync.WaitGroup
	sessions.Range(func(s, _ any) bool {
		ending.Go(func() { _ = s.(*session).end() })
		return true
	})
	ending.Wait()
}

// session is the run of a pool, from its start to its end.
type session struct {
	command *exec.Cmd
	socket  net.Conn
	// over is closed when there is nothing more to hear, and why says what is known
	// of the reason.
	over chan struct{}
	why  string
	ends sync.Once
	err  error // of the end

	writes sync.Mutex
	mu     sync.Mutex
	number uint64
	asked  map[uint64]chan coordinate.Answer
}

// overError reports that a session is over.
type overError struct{ why string }

func (e *overError) Error() string { return "the run of the pool is over: " + e.why }

// start starts clusterrun, with a socket whose other end it listens to. The socket
// is nobody's but ours and its, so that our death closes it.
func start(binary string, s *spec.RunSpec) (*session, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "pool"), os.NewFile(uintptr(pair[1]), "coordinator")
	defer theirs.Close()
	defer ours.Close() // socket is a copy
	socket, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	const descriptor = "3" // the first of ExtraFiles
	command := exec.Command(binary, "run", "--coordinator-fd", descriptor, "-")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{theirs}
	// A session of its own: Ctrl-C is for the program, and the pool ends with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		socket.Close()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	out := &session{command: command, socket: socket, over: make(chan struct{}), asked: map[uint64]chan coordinate.Answer{}}
	sessions.Store(out, nil)
	go out.listen()
	return out, nil
}

// listen hands answers to those who have asked.
func (s *session) listen() {
	defer close(s.over)
	lines := json.NewDecoder(s.socket)
	for {
		var a coordinate.Answer
		if lines.Decode(&a) != nil {
			return
		}
		if a.Event == coordinate.EventOver {
			s.why = a.Message
			return
		}
		s.mu.Lock()
		asked := s.asked[a.ID]
		delete(s.asked, a.ID)
		s.mu.Unlock()
		if asked != nil {
			asked <- a
		}
	}
}

// ask waits for the answer to a request. An [overError] says that there will be none.
func (s *session) ask(ctx context.Context, r coordinate.Request) (coordinate.Answer, error) {
	answer := make(chan coordinate.Answer, 1)
	s.mu.Lock()
	s.number++
	r.ID = s.number
	s.asked[r.ID] = answer
	s.mu.Unlock()
	if err := s.send(r); err != nil {
		return coordinate.Answer{}, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-s.over:
	case <-ctx.Done():
		return coordinate.Answer{}, ctx.Err()
	}
	select {
	case a := <-answer: // it came first
		return a, nil
	default:
		return coordinate.Answer{}, &overError{s.why}
	}
}

// send writes a request. That nobody is there to read it is seen by who waits for the
// answer.
func (s *session) send(r coordinate.Request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	_, _ = s.socket.Write(append(line, '\n'))
	return nil
}

// awaitOver waits for the run to say how it has ended, which it is about to, and says
// what is known otherwise if it does not.
func (s *session) awaitOver(otherwise string) string {
	timer := time.NewTimer(2 * endGrace)
	defer timer.Stop()
	select {
	case <-s.over:
		if s.why != "" {
			return s.why
		}
	case <-timer.C:
	}
	return otherwise
}

// end says that nothing more is asked, by which the run ends in order, and waits for that. A
// socket that is closed as a whole would be the death of this process.
func (s *session) end() error {
	s.ends.Do(func() {
		defer sessions.Delete(s)
		defer s.socket.Close()
		if u, ok := s.socket.(*net.UnixConn); !ok || u.CloseWrite() != nil {
			s.socket.Close()
		}
		ended := make(chan error, 1)
		go func() { ended <- s.command.Wait() }()
		timer := time.NewTimer(endBound)
		defer timer.Stop()
		select {
		case err := <-ended:
			if err != nil {
				s.err = fmt.Errorf("clusterrun has ended with %w", err)
			}
		case <-timer.C:
			_ = s.command.Process.Kill() // its processes end with it
			<-ended
			s.err = fmt.Errorf("the run of the pool did not end within %s, and was killed", endBound)
		}
	})
	return s.err
}
