package homeworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workers"
)

// sides serves the supervisors of commands.
type sides struct {
	*workers.Connection
	mu        sync.Mutex
	submitted *workers.Served // for submitted runs; may be nil
}

// exit stops the supervisor of submitted runs, unless runs need it.
func (r *sides) exit(ctx context.Context) bool {
	r.mu.Lock()
	s := r.submitted
	r.mu.Unlock()
	if s == nil {
		return true
	}
	if s.IsNeeded(ctx) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, idleBound)
	defer cancel()
	return s.Exit(ctx) == nil
}

// attend serves a command's supervisor until the supervisor exits or, if it is for submitted runs,
// until the command exits.
func (r *sides) attend(conn *net.UnixConn) error {
	socket, err := receive(conn)
	if errors.Is(err, io.EOF) {
		return nil // the command only needed this process to stay
	}
	if err != nil {
		return err
	}
	in := json.NewDecoder(conn)
	var first request
	err = in.Decode(&first)
	if err == nil && first.Serve == nil {
		err = errors.New("it does not describe a supervisor")
	}
	if err != nil {
		_ = socket.Close()
		return fmt.Errorf("cannot read a request: %w", err)
	}
	link, err := net.FileConn(socket)
	_ = socket.Close()
	if err != nil {
		return err
	}
	s := first.Serve
	submitted := s.Options.IdleExit > 0
	s.Options.IdleExit = 0 // this process decides
	served, err := r.Serve(workers.Supervised{Options: s.Options, Conn: link, PID: s.PID, Environ: s.Environ, Log: s.Log})
	if err != nil {
		_ = json.NewEncoder(conn).Encode(event{Refused: err.Error()})
		_ = link.Close()
		return err
	}
	if submitted {
		r.mu.Lock()
		r.submitted = served
		r.mu.Unlock()
		_, _ = io.Copy(io.Discard, conn)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for {
			var next request
			switch err := in.Decode(&next); {
			case err != nil:
				served.Started()
				cancel() // the command has exited, and its supervisor stops the run
				return
			case next.Leave:
				served.Leave()
			case next.Start != nil:
				go r.follow(ctx, json.NewEncoder(conn), *next.Start, served.Started)
			}
		}
	}()
	<-served.Ended()
	return nil
}

// follow starts a run for a command and reports its end to the command.
func (r *sides) follow(ctx context.Context, out *json.Encoder, s start, started func()) {
	run, err := starter.Start(ctx, r.Client, s.Spec, s.options())
	started()
	if err != nil {
		_ = out.Encode(event{Refused: err.Error(), Running: starter.IsError[*starter.RunningError](err)})
		return
	}
	_ = out.Encode(event{Execution: run.ExecutionID})
	result, _ := run.WaitNotify(ctx, func(err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		stuck, _ := errors.AsType[*starter.StuckError](err)
		_ = out.Encode(event{Trouble: &text, Stuck: stuck})
	})
	_ = out.Encode(event{Ended: true, Result: result}) // without a result, the command asks the server
}

// receive receives a file.
func receive(conn *net.UnixConn) (*os.File, error) {
	var b [1]byte
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(b[:], rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err == nil && len(messages) != 1 {
		err = fmt.Errorf("it has %d control messages", len(messages))
	}
	if err != nil {
		return nil, fmt.Errorf("the request has no socket: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "supervisor"), nil
}
