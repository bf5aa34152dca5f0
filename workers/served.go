package workers

import (
	"context"
	"net"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Connection is a connection to a server that several supervisors' sides share.
type Connection struct {
	client.Client
	// HookDir is the same as in [activities.Config].
	HookDir string

	asked    *askedTimes
	known    *server.Known
	starting *starting
}

// Dial connects to the server.
func Dial(ctx context.Context, o connect.Options, host string, log *zap.Logger, timeout time.Duration) (*Connection, error) {
	asked, known, starting := new(askedTimes), new(server.Known), new(starting)
	o.Identity = identity(host, "")
	c, err := connect.Dial(ctx, o, sdkLogger{log}, timeout, grpc.WithChainUnaryInterceptor(starting.intercept, asked.intercept), grpc.WithStatsHandler(known))
	if err != nil {
		return nil, err
	}
	// The SDK reports this process to the server, and listens for the server's commands, for as
	// long as there is a worker. This worker does not get any work.
	w := worker.New(c, spec.TaskQueue+"/home-worker", worker.Options{DisableWorkflowWorker: true, LocalActivityWorkerOnly: true})
	if err := w.Start(); err != nil {
		c.Close()
		return nil, err
	}
	return &Connection{Client: c, asked: asked, known: known, starting: starting}, nil
}

// Supervised describes a supervisor started by a command, for use by the supervisor's side.
type Supervised struct {
	Options
	// Conn is the socket to the supervisor, and PID is its process ID.
	Conn net.Conn
	PID  int
	// Environ is the supervisor's environment.
	Environ []string
	// Log is the side's log file.
	Log string
}

// Served is a supervisor's side that another process has started, on a shared connection.
type Served struct {
	side   *side
	ctx    context.Context // from Serve until Leave
	leave  context.CancelFunc
	ended  chan struct{} // closed when the side has stopped
	endLog func()
	// Started must be called once a sole run has been started, or will not be started.
	Started func()

	running polling
}

// Serve starts a supervisor's side.
func (c *Connection) Serve(s Supervised) (*Served, error) {
	o, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	log, end, err := newLogger(o.Debug, s.Log)
	if err != nil {
		return nil, err
	}
	v := &Served{ended: make(chan struct{}), endLog: end, Started: func() {}, side: &side{
		Options: o, log: log, environ: s.Environ, process: s.PID, hookDir: c.HookDir, asked: c.asked, known: c.known, identity: identity(o.Host, o.Instance),
		supervisor: supervisor.NewOwnersClient(s.Conn, s.PID, o.StateDir, o.Instance),
	}}
	v.ctx, v.leave = context.WithCancel(context.Background())
	if err := v.side.prepare(v.ctx); err != nil {
		v.leave()
		end()
		return nil, err
	}
	if o.SoleRun {
		v.Started = c.starting.begin(o.Queue)
	}
	if v.running, err = v.side.begin(v.ctx, c.Client); err != nil {
		v.Started()
		v.leave()
		v.side.shut()
		end()
		return nil, err
	}
	go v.attend()
	return v, nil
}

func (v *Served) attend() {
	defer close(v.ended)
	defer v.Started()
	defer v.endLog()
	defer v.leave()
	if err := v.side.attend(v.ctx, v.running.stop); err != nil {
		v.side.log.Warn("the Temporal client has exited", zap.Error(err))
	}
	_ = v.side.supervisor.Close()
	v.side.shut()
}

// Leave stops the side, which then reports nothing more.
func (v *Served) Leave() { v.leave() }

// IsNeeded reports whether runs need this host worker.
func (v *Served) IsNeeded(ctx context.Context) bool { return v.side.isNeeded(ctx) }

// Exit stops the supervisor, and returns when it has exited.
func (v *Served) Exit(ctx context.Context) error {
	return supervisor.RequestEnd(ctx, v.side.StateDir, v.side.process)
}

// Ended returns a channel that is closed when the side has stopped.
func (v *Served) Ended() <-chan struct{} { return v.ended }
