package pool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/starter/coordinate"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// callGrace is the time in which a running call must return when the pool is shut down.
	callGrace = time.Second
	// endGrace bounds the time in which a process ends by itself, and endBound the time in
	// which all of them end with their run.
	endGrace = 3 * time.Second
	endBound = time.Minute
)

// sessions holds all sessions that have not ended.
var sessions sync.Map

// endAll ends all pools of this process.
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
	// over is closed when no more answers can come. why is the reason, if it is known.
	over chan struct{}
	why  string
	ends sync.Once
	err  error // of the end

	// calling holds an element while a call is in progress. It guards batch.
	calling chan struct{}
	batch   uint64

	writes sync.Mutex
	mu     sync.Mutex
	// at is the position up to which the history of the queue has been read.
	at     string
	number uint64
	asked  map[uint64]chan coordinate.Answer
}

// clientName is the name of a pool in the queue of its own run.
const clientName = "pool"

// overError reports that a session is over.
type overError struct{ why string }

func (e *overError) Error() string { return "the run of the pool is over: " + e.why }

// start starts clusterrun with one end of a socket, and listens to the other. Only the two
// programs have it, so our death closes it.
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
	// In a session of its own it does not get Ctrl-C, which is for this program. The pool ends
	// with the program.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		socket.Close()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	out := &session{command: command, socket: socket, over: make(chan struct{}), calling: make(chan struct{}, 1), asked: map[uint64]chan coordinate.Answer{}}
	sessions.Store(out, nil)
	go out.listen()
	return out, nil
}

// listen delivers answers to the callers that wait for them.
func (s *session) listen() {
	defer close(s.over)
	lines := json.NewDecoder(s.socket)
	for {
		var a coordinate.Answer
		if lines.Decode(&a) != nil {
			return
		}
		var opened closure.Opened
		switch a.Event {
		case coordinate.EventOver:
			s.why = a.Message
			return
		case coordinate.EventOpen:
			if json.Unmarshal(a.Answer, &opened) != nil {
				return
			}
		}
		s.mu.Lock()
		s.at = cmp.Or(opened.At, s.at)
		asked := s.asked[a.ID]
		delete(s.asked, a.ID)
		s.mu.Unlock()
		if asked != nil {
			asked <- a
		}
	}
}

// call schedules closures, and returns their outcomes. It returns an [overError] if not all of
// them will have one.
func (s *session) call(ctx context.Context, closures []closure.Closure) ([]closure.Outcome, error) {
	select {
	case s.calling <- struct{}{}:
		defer func() { <-s.calling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.batch++
	var scheduled closure.ScheduleAnswer
	if err := s.ask(ctx, wire.OpSchedule, closure.ScheduleRequest{Client: clientName, Batch: s.batch, Closures: closures}, &scheduled); err != nil {
		return nil, err
	}
	outcomes, missing := make([]closure.Outcome, len(closures)), map[uint64]bool{}
	for _, id := range scheduled.IDs(len(closures)) {
		missing[id] = true
	}
	for len(missing) > 0 {
		s.mu.Lock()
		at := s.at
		s.mu.Unlock()
		var news closure.Outcomes
		if err := s.ask(ctx, wire.OpOutcomes, closure.OutcomesRequest{Client: clientName, After: at, Wait: closure.MaxWait}, &news); err != nil {
			return nil, err
		}
		news.Each(missing, func(o closure.Outcome) {
			outcomes[o.ID-scheduled.First] = o
			delete(missing, o.ID)
		})
		s.mu.Lock()
		s.at = news.At
		s.mu.Unlock()
	}
	return outcomes, nil
}

// ask makes a request and decodes its answer. It returns an [overError] if no answer will come.
func (s *session) ask(ctx context.Context, op string, message, out any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	answer := make(chan coordinate.Answer, 1)
	s.mu.Lock()
	s.number++
	r := coordinate.Request{ID: s.number, Op: op, Message: b}
	s.asked[r.ID] = answer
	s.mu.Unlock()
	if err := s.send(r); err != nil {
		return err
	}
	var a coordinate.Answer
	select {
	case a = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.over:
		select {
		case a = <-answer: // it came first
		default:
			return &overError{s.why}
		}
	}
	switch {
	case a.Error == nil:
		return json.Unmarshal(a.Answer, out)
	case a.Error.Code == wire.CodeOver:
		return &overError{s.awaitOver(a.Error.Message)}
	}
	return &closure.Error{Kind: refusedKind, Message: strings.TrimPrefix(a.Error.Message, "field "+a.Error.Field+": ")}
}

// refusedKind is the kind of error of a call that the queue refuses.
const refusedKind = "RefusedError"

// send writes a request. It ignores errors of writing, because the caller notices them when it
// waits for the answer.
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

// awaitOver waits for the end of the run, and returns its reason. If the run does not report
// one in time, it returns otherwise.
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

// end closes the socket for writing, which ends the run in order, and waits for that. Closing
// all of the socket would look like the death of this process.
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
			_ = s.command.Process.Kill() // this also ends its processes
			<-ended
			s.err = fmt.Errorf("the run of the pool did not end within %s, and was killed", endBound)
		}
	})
	return s.err
}
