package taskapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

const (
	// writePatience is the maximum time to write an answer.
	writePatience = 10 * time.Second
	maxHeader     = 16 << 10
)

// patience limits the time to read a request's head and body, and the time for the run to answer.
// run is shorter than our clients' wait, so that clients receive the reason.
type patience struct{ head, body, run time.Duration }

var usualPatience = patience{10 * time.Second, 30 * time.Second, 50 * time.Second}

// Config configures a [Server].
type Config struct {
	// StateDir is the host worker's state directory. It contains the sockets if its path is short
	// enough.
	StateDir string
	// Barriers releases barriers that are not local. If nil, a barrier is released only if all its
	// participants are on this host.
	Barriers Barriers
	// Broker returns the broker for a task's process with the given slots. Its errors are like
	// [Broker]'s. If nil, tasks cannot serve.
	Broker func(by runkey.Task, slots int) (Broker, error)
	// Queue returns the queue of a task's run for scheduling closures. If nil, tasks cannot
	// schedule any.
	Queue func(ctx context.Context, by runkey.Task) (closurequeue.Queue, error)
	// Stops forwards stop requests to the run. If nil, tasks can neither request a stop nor ask
	// about one.
	Stops Stops
	// Observe, if not nil, is called with each step's duration in seconds.
	Observe func(seconds float64)
	Log     *zap.Logger
}

// Server serves a host's tasks.
type Server struct {
	Config
	dir  string
	http *http.Server
	// group holds the goroutines that accept connections.
	group *background.Group
	// answering counts the connections.
	answering sync.WaitGroup
	patience  patience

	// files is held while files are accessed, which may be slow, and is locked before mu. Changing
	// tasks or groups requires both.
	files sync.Mutex

	mu     sync.Mutex // heartbeats wait for it
	tasks  map[runkey.Task]*endpoint
	groups map[group]*rounds
	stops  map[runkey.Run]*stopping
}

// group names one of a run's generations.
type group struct {
	run        runkey.Run
	generation int
}

// endpoint is a task and its socket.
type endpoint struct {
	id   runkey.Task
	path string
	// Server.files guards listener and missing, which reports that a removed socket could not be
	// recreated.
	listener *listener
	missing  bool
	rounds   *rounds
	stopping *stopping
	// ended is cancelled when the task is dropped; its cause is the reason.
	ended context.Context
	end   context.CancelCauseFunc
	// visits holds the arrivals at barriers that are not local.
	visits visits

	mu       sync.Mutex
	task     Task
	progress *Progress
	reports  []taskmetrics.Report
	work     *work
}

// NewServer creates the socket directory and returns a server, which serves nothing before
// [Server.Listen].
func NewServer(c Config) (*Server, error) { return newServer(c, usualPatience) }

func newServer(c Config, p patience) (*Server, error) {
	dir, err := makeDir(c.StateDir)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, dir: dir, tasks: map[runkey.Task]*endpoint{}, groups: map[group]*rounds{}, stops: map[runkey.Run]*stopping{},
		group: background.NewGroup(), patience: p,
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), Protocols: &protocols,
		// A task's connections are limited, so a connection without a request is closed.
		ReadHeaderTimeout: p.head, IdleTimeout: p.head, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.answering.Add(1)
			case http.StateClosed:
				s.answering.Done()
			}
		},
		ErrorLog: zap.NewStdLog(zap.NewNop()), // clients get errors for their mistakes
	}
	s.group.Go(s.keepSockets)
	return s, nil
}

// Listen serves a task, and returns its socket's path. If the task is already served, Listen
// updates it, for example for its next process. It stops older generations of the run.
func (s *Server) Listen(t Task) (string, error) {
	s.files.Lock()
	defer s.files.Unlock()
	s.endOlder(t.ID.Run, t.ID.Generation)
	e := s.tasks[t.ID]
	if e == nil {
		var err error
		if e, err = s.open(t); err != nil {
			return "", err
		}
	} else if e.listener != nil {
		s.restoreOf(e)
	} else if err := s.bind(e); err != nil {
		return "", err
	}
	e.mu.Lock()
	if e.task.LogDir != t.LogDir || e.task.RestartCount != t.RestartCount {
		e.progress, e.reports, e.work = nil, nil, newWork(s.Observe) // of the previous process
	}
	e.task = t
	e.mu.Unlock()
	e.rounds.starts(t.ID.Task)
	return e.path, nil
}

// open starts to serve a task. s.files must be held.
func (s *Server) open(t Task) (*endpoint, error) {
	dir, err := s.makeRunDir(&t)
	if err != nil {
		return nil, err
	}
	g := group{t.ID.Run, t.ID.Generation}
	r := s.groups[g]
	if r == nil {
		r = newRounds(&roundLog{path: filepath.Join(dir, short("rounds", fileOf(runkey.Task{Generation: t.ID.Generation})))})
	}
	e := &endpoint{id: t.ID, task: t, work: newWork(s.Observe), rounds: r, path: filepath.Join(dir, fileOf(t.ID))}
	e.ended, e.end = context.WithCancelCause(context.Background())
	s.mu.Lock()
	s.groups[g], s.tasks[t.ID], e.stopping = r, e, s.stoppingOf(t.ID.Run)
	s.mu.Unlock()
	if err := s.bind(e); err != nil {
		s.mu.Lock()
		delete(s.tasks, t.ID)
		s.mu.Unlock()
		return nil, err
	}
	return e, nil
}

// Ended records that a task's process has exited, and whether the task ended with it. how describes
// the exit, such as "exited with exit code 1".
func (s *Server) Ended(id runkey.Task, final bool, how string) {
	s.mu.Lock()
	r, e := s.groups[group{id.Run, id.Generation}], s.tasks[id]
	s.mu.Unlock()
	if r != nil {
		r.processEnded(id.Task, final, how)
	}
	if e != nil {
		e.visits.endAll(ofEnded(id.Task))
		if final {
			s.rest(e)
		}
	}
}

// Progress returns a task's reported progress, or nil.
func (s *Server) Progress(id runkey.Task) *Progress {
	s.mu.Lock()
	e := s.tasks[id]
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.progress
}

// Reports returns the metrics that a task's process has reported over time.
func (s *Server) Reports(id runkey.Task) []taskmetrics.Report {
	s.mu.Lock()
	e := s.tasks[id]
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.reports)
}

// Release stops serving a run.
func (s *Server) Release(run runkey.Run) {
	s.files.Lock()
	defer s.files.Unlock()
	s.endWhere(func(g group) bool { return g.run == run }, "the run has been released on this host")
	s.mu.Lock()
	delete(s.stops, run)
	s.mu.Unlock()
	_ = os.RemoveAll(filepath.Join(s.dir, dirOf(run)))
}

// endOlder stops a run's generations before the given one. s.files must be held.
func (s *Server) endOlder(run runkey.Run, generation int) {
	s.endWhere(func(g group) bool { return g.run == run && g.generation < generation }, "the run has restarted all tasks")
}

// endWhere stops the generations that which selects. s.files must be held.
func (s *Server) endWhere(which func(group) bool, why string) {
	var ended []*rounds
	var tasks []*endpoint
	s.mu.Lock()
	for g, r := range s.groups {
		if which(g) {
			ended = append(ended, r)
			delete(s.groups, g)
		}
	}
	for id, e := range s.tasks {
		if which(group{id.Run, id.Generation}) {
			tasks = append(tasks, e)
			delete(s.tasks, id)
		}
	}
	s.mu.Unlock()
	for _, r := range ended {
		r.end(why)
	}
	for _, e := range tasks {
		e.visits.endAll(overBecause(why))
		s.unbind(e)
		e.end(errors.New(why))
	}
}

// Sweep removes earlier servers' files of runs that are no longer here.
func (s *Server) Sweep(here []runkey.Run) {
	keep := map[string]bool{}
	for _, run := range here {
		keep[dirOf(run)] = true
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			_ = os.RemoveAll(filepath.Join(s.dir, e.Name()))
		}
	}
}

// Close stops serving and waits until no request is in progress. The sockets of tasks that have not
// exited remain for the next server.
func (s *Server) Close() error {
	s.group.Close()       // no more connections are accepted
	err := s.http.Close() // all connections, including connections of ended tasks
	s.answering.Wait()
	s.files.Lock()
	defer s.files.Unlock()
	for _, r := range s.groups {
		r.close()
	}
	_ = os.Remove(s.dir) // if it is empty
	return err
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	e := r.Context().Value(connKey{}).(*conn).listener.endpoint
	// The deadline protects against clients that send half a body, even if the request needs none,
	// since net/http reads it completely before the next request. Without a body, a deadline would
	// cancel the connection's context while the request waits for news.
	var deadline time.Time
	if r.ContentLength != 0 {
		deadline = time.Now().Add(s.patience.body)
	}
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
	out, problem := s.answer(&request{server: s, endpoint: e, w: w, Request: r})
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// view returns the task's current state.
func (e *endpoint) view() Task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.task
}

func (e *endpoint) setProgress(p wire.Progress) {
	e.mu.Lock()
	e.progress = &p
	if len(p.Metrics) > 0 {
		if e.reports = append(e.reports, taskmetrics.Report{At: time.Now().UTC(), Step: p.Current, Metrics: p.Metrics}); len(e.reports) == 2*taskmetrics.Kept {
			e.reports = taskmetrics.Thin(e.reports, taskmetrics.Kept)
		}
	}
	w := e.work
	e.mu.Unlock()
	w.progress(p.Current)
}
