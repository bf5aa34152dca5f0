package pool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// callGrace is how long a running call may take to return when the pool is shut down.
	callGrace = time.Second
	// endGrace limits how long a process may take to exit voluntarily, and endBound how long all
	// processes may take to exit with their run.
	endGrace = 3 * time.Second
	endBound = time.Minute
)

// sessions holds all open sessions.
var sessions sync.Map

// endAll shuts down this process's pools.
func endAll() {
	var ending sync.WaitGroup
	sessions.Range(func(s, _ any) bool {
		ending.Go(func() { _ = s.(*session).end() })
		return true
	})
	ending.Wait()
}

// session is a pool's run, from start to end.
type session struct {
	command *exec.Cmd
	socket  net.Conn
	ends    sync.Once
	err     error // why the session ended

	// calling holds an element while a call is in progress. It guards the fields below.
	calling chan struct{}
	answers *bufio.Reader
	// scheduled counts the scheduled closures, and taken the outcomes received.
	scheduled, taken uint64
	// why is why no more answers will come, if known.
	why string
}

// clientName is a pool's name in its run's queue.
const clientName = "pool"

// overError reports that a session is over.
type overError struct{ why string }

func (e *overError) Error() string { return "the pool's run is over: " + e.why }

// start starts clusterrun with one end of a socket, and listens on the other. Only the two
// programs hold the socket, so it closes when we die.
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
	// In a separate session, it does not receive Ctrl-C, which is meant for this program. The
	// pool is shut down with the program.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		socket.Close()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	out := &session{command: command, socket: socket, calling: make(chan struct{}, 1), answers: bufio.NewReader(socket)}
	sessions.Store(out, nil)
	return out, nil
}

// called holds a call's outcomes.
type called struct {
	outcomes []closure.Outcome
	err      error
}

// call schedules closures and returns their outcomes. It returns an [overError] if some outcomes
// will never come. When ctx is done, call returns, and the next call waits for these outcomes.
func (s *session) call(ctx context.Context, closures []closure.Closure) ([]closure.Outcome, error) {
	select {
	case s.calling <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan called, 1)
	go func() {
		defer func() { <-s.calling }()
		outcomes, err := s.callAll(closures)
		done <- called{outcomes, err}
	}()
	select {
	case c := <-done:
		return c.outcomes, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *session) callAll(closures []closure.Closure) ([]closure.Outcome, error) {
	outcomes := make([]closure.Outcome, len(closures))
	r := closure.SyncRequest{Client: clientName, First: s.scheduled + 1, Closures: closures, Wait: true}
	for missing := len(closures); missing > 0; {
		r.After = s.taken
		var news closure.SyncAnswer
		if err := s.ask(r, &news); err != nil {
			return nil, err
		}
		if s.scheduled = news.Scheduled; s.scheduled >= r.First {
			r.Closures = nil
		}
		for _, o := range news.Outcomes {
			o.Value = closure.PlainValue(o.Value)
			outcomes[o.ID-r.First] = o
		}
		s.taken += uint64(len(news.Outcomes))
		missing -= len(news.Outcomes)
	}
	return outcomes, nil
}

// ask sends a task API request and decodes the answer. It returns an [overError] if no answer
// will come.
func (s *session) ask(in closure.SyncRequest, out *closure.SyncAnswer) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, "http://clusterrun"+wire.PathCoordinator, bytes.NewReader(b))
	if err != nil {
		return err
	}
	_ = r.Write(s.socket) // if the run has ended, its last answer contains the reason
	return s.answer(out)
}

// answer reads and decodes an answer.
func (s *session) answer(out any) error {
	r, err := http.ReadResponse(s.answers, nil)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(r.Body)
	}
	if err != nil {
		return &overError{s.why}
	}
	if r.StatusCode == http.StatusOK {
		return json.Unmarshal(body, out)
	}
	var failed wire.Failure
	if err := json.Unmarshal(body, &failed); err != nil {
		return err
	}
	if failed.Error.Code == wire.CodeOver {
		s.why = failed.Error.Message
		return &overError{s.why}
	}
	return &closure.Error{Kind: refusedKind, Message: strings.TrimPrefix(failed.Error.Message, "field "+failed.Error.Field+": ")}
}

// refusedKind is the error kind of a call that the queue refuses.
const refusedKind = "RefusedError"

// awaitOver waits until the run has ended and returns the reason. If the run does not report a
// reason in time, it returns otherwise.
func (s *session) awaitOver(otherwise string) string {
	_ = s.socket.SetReadDeadline(time.Now().Add(2 * endGrace))
	s.calling <- struct{}{}
	defer func() { <-s.calling }()
	_ = s.answer(nil) // the last one, which is unsolicited
	return cmp.Or(s.why, otherwise)
}

// end closes the socket for writing, which ends the run in order, and waits for the run's end.
// If it closed the whole socket, this process would seem to have died.
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
				s.err = fmt.Errorf("clusterrun exited with %w", err)
			}
		case <-timer.C:
			_ = s.command.Process.Kill() // this also kills its processes
			<-ended
			s.err = fmt.Errorf("the pool's run did not end within %s, and was killed", endBound)
		}
	})
	return s.err
}
