package remotehosts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/privatedir"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Worker is a host worker that is stopped with us.
type Worker interface {
	// StopAll stops all processes, and stops the worker.
	StopAll(supervisor.StopAll)
	// Stop stops all processes as if the owner were gone, and waits until the worker has exited
	// or ctx is done.
	Stop(ctx context.Context)
}

// ServeConfig configures a host that serves a run.
type ServeConfig struct {
	// Version is this program's version. Commands with another version are refused.
	Version string
	// Parent is where the run's directory is created.
	Parent string
	// StartWorker starts a host worker. stdin is for the task that the options select to read
	// it, or nil. died is called when the host worker is dead for good.
	StartWorker func(o workers.Options, stdin *os.File, died func(error)) (Worker, error)
}

const (
	// workerStop limits the wait for the host worker to exit.
	workerStop = 10 * time.Second
	// silence is how long pings may go unanswered before the command counts as gone. It is long
	// enough for a command that a user has suspended.
	silence = 15 * time.Minute
)

// Serve serves the command connected to in and out until the command is gone or ctx is done. It
// then removes everything that belongs to the run.
func Serve(ctx context.Context, in io.Reader, out io.Writer, c ServeConfig) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &service{ServeConfig: c, fail: fail, ended: make(chan struct{})}
	defer s.close()
	frames := frameWriter{out}
	if _, err := frames.Write(nil); err != nil {
		return err
	}
	conn := &onlyConn{closed: make(chan struct{})}
	conn.Conn = &pipes{Reader: in, Writer: frames, close: func() { close(conn.closed) }}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /start", s.start)
	for path, handle := range map[string]http.HandlerFunc{
		"/connections": s.connect, "/archive": s.archive, "/output": s.output, "/stdin": s.stdin, "/stop": s.stop, "/ends": s.ends, "/end": s.end,
	} {
		mux.HandleFunc("POST "+path, s.whileRunning(handle))
	}
	server := http.Server{
		Handler: mux, Protocols: protocols(),
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: time.Minute, PingTimeout: silence,
			// The connection's buffer exceeds a request's, because a task may leave its stdin
			// unread.
			MaxReceiveBufferPerConnection: 3 << 20, MaxReceiveBufferPerStream: 1 << 20,
		},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: silence,
	}
	go func() { _ = server.Serve(conn) }()
	select {
	case <-ctx.Done():
	case <-conn.closed:
	}
	_ = server.Close()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// service serves one run on a host.
type service struct {
	ServeConfig
	fail context.CancelCauseFunc

	mu      sync.Mutex
	dir     *rundir.Dir
	sockets string // the socket's directory
	socket  *net.UnixListener
	input   *os.File // stdin of a local task, or nil
	worker  Worker

	ending sync.Once
	ended  chan struct{} // closed when the host worker has exited
}

func (s *service) start(w http.ResponseWriter, r *http.Request) {
	var in startRequest
	if !read(w, r, &in) {
		return
	}
	if in.Version != s.Version {
		http.Error(w, s.Version, http.StatusConflict)
		return
	}
	facts := factsOf(os.Environ(), IsOwnAddress)
	if err := s.startWorker(in.Options, facts); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(facts)
}

// startWorker starts the host worker in a new directory.
func (s *service) startWorker(o workers.Options, facts Facts) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		return errors.New("a host worker is already running")
	}
	if s.dir, err = rundir.Create(s.Parent); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	o.StateDir, o.LogRoot = s.dir.Path, s.logs()
	const socket = "/server.sock"
	if s.sockets, err = privatedir.Sockets(s.dir.Path, "server", len(socket)); err != nil {
		return err
	}
	o.Server = connect.Options{
		Namespace: o.Server.Namespace, CodecKeys: o.Server.CodecKeys, Socket: s.sockets + socket,
	}
	if _, err := o.Server.Client(); err != nil {
		return err // before anything starts
	}

	o.Advertise = cmp.Or(o.Advertise, facts.Address)
	if s.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: o.Server.Socket, Net: "unix"}); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	var stdin *os.File
	if o.Stdin != "" {
		if stdin, s.input, err = os.Pipe(); err != nil {
			return err
		}
	}
	s.worker, err = s.StartWorker(o, stdin, s.fail)
	return err
}

func (s *service) logs() string { return filepath.Join(s.dir.Path, "logs") }

// whileRunning returns a handler that answers with an error until the host worker is started.
func (s *service) whileRunning(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		started := s.worker != nil
		s.mu.Unlock()
		if !started {
			http.Error(w, "no host worker has been started", http.StatusConflict)
			return
		}
		handle(w, r)
	}
}

func (s *service) stop(w http.ResponseWriter, r *http.Request) {
	var how supervisor.StopAll
	if read(w, r, &how) {
		s.worker.StopAll(how)
	}
}

// Ends records how a host's tasks ended, according to its journal.
type Ends struct {
	Exits map[string]spec.Exit
	// Living reports whether any of its processes is still alive.
	Living bool
}

func (s *service) ends(w http.ResponseWriter, _ *http.Request) {
	all, err := supervisor.Journalled(s.dir.Path)
	ends := Ends{Living: slices.ContainsFunc(all, func(p supervisor.Process) bool { return p.Exit == nil })}
	if err == nil {
		ends.Exits, err = workers.LastExits(s.dir.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(ends)
}

// stdin copies the request's body to a task's stdin. If the body breaks off, the stdin is
// not closed, so that the task does not mistake a part for the whole.
func (s *service) stdin(w http.ResponseWriter, r *http.Request) {
	if s.input == nil {
		http.Error(w, "no task reads stdin", http.StatusConflict)
		return
	}
	if _, err := io.Copy(s.input, r.Body); err == nil {
		_ = s.input.Close()
	}
}

func (s *service) end(http.ResponseWriter, *http.Request) { s.endWorker() }

// endWorker stops the host worker and all processes, which ends the output.
func (s *service) endWorker() {
	s.ending.Do(func() {
		ctx, done := context.WithTimeout(context.Background(), workerStop)
		defer done()
		s.worker.Stop(ctx)
		close(s.ended)
	})
}

// close removes everything that belongs to the run.
func (s *service) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.socket != nil {
		_ = s.socket.Close() // its users are gone
	}
	if s.input != nil {
		defer s.input.Close() // after the tasks have exited
	}
	if s.worker != nil {
		s.endWorker()
	}
	if s.sockets != "" {
		_ = os.RemoveAll(s.sockets) // it may be in a different directory
	}
	if s.dir != nil {
		_ = s.dir.Remove()
	}
}
