package workers

import (
	"context"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// OwnersSide is a [Side] in the process of the owner. The runs of `clusterrun run` end with
// their owner anyway, and it saves the start of a process and of a connection. If the owner is
// killed, the supervisor starts a Side, which reports to the server how the runs have ended.
type OwnersSide struct {
	side  *side
	ctx   context.Context // from NewOwnersSide until Leave
	leave context.CancelFunc
	ended chan struct{} // closed when the Temporal client has exited

	mu      sync.Mutex
	running polling
}

// NewOwnersSide starts a supervisor of a new state directory and prepares its side. It calls
// start with the file for Side of the supervisor's [Owner]; start returns the pid. The side
// logs to file.
func NewOwnersSide(ctx context.Context, o Options, file string, start func(Options, *os.File) (pid int, err error)) (*OwnersSide, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.Instance = supervisor.NewInstance()
	conn, theirs, err := supervisor.SocketPair()
	if err != nil {
		return nil, err
	}
	pid, err := start(o, theirs)
	_ = theirs.Close()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	log, err := newLogger(o.Debug, file)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s := &OwnersSide{ended: make(chan struct{}), side: &side{
		Options: o, log: log, supervisor: supervisor.NewOwnersClient(conn, pid, o.StateDir, o.Instance),
	}}
	s.ctx, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.side.prepare(s.ctx); err != nil {
		s.leave()
		_ = conn.Close()
		return nil, err
	}
	go s.attend()
	return s, nil
}

// Dial connects to the server for both the owner and the side.
func (s *OwnersSide) Dial(ctx context.Context, server connect.Options, timeout time.Duration) (client.Client, error) {
	server.Identity = identity(s.side.Host, s.side.supervisor.Instance())
	return connect.Dial(ctx, server, sdkLogger{s.side.log}, timeout, grpc.WithChainUnaryInterceptor(s.side.asked.intercept))
}

// Serve starts to serve the queues with the client of Dial. The caller closes the client after
// [OwnersSide.Wait].
func (s *OwnersSide) Serve(c client.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil // it has handed over
	}
	var err error
	s.running, err = s.side.begin(s.ctx, c)
	return err
}

func (s *OwnersSide) attend() {
	defer close(s.ended)
	defer s.side.log.Sync() //nolint:errcheck // it has none
	stop := func() {
		s.leave() // no new tasks start
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running.stop()
	}
	if err := s.side.attend(s.ctx, stop); err != nil {
		s.side.log.Warn("the Temporal client has exited", zap.Error(err))
	}
	_ = s.side.supervisor.Close()
	s.side.shut()
}

// Supervisor returns the interface of the supervisor.
func (s *OwnersSide) Supervisor() supervisor.API { return s.side.supervisor }

// Leave ends the side. It reports nothing after that.
func (s *OwnersSide) Leave() { s.leave() }

// HandOver ends the side and lets the supervisor start another. It returns when the side has
// ended or ctx is done.
func (s *OwnersSide) HandOver(ctx context.Context) {
	s.side.handsOver.Store(true)
	s.leave()
	s.Wait(ctx)
}

// Wait returns when the Temporal client has exited, or ctx is done.
func (s *OwnersSide) Wait(ctx context.Context) {
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
}
