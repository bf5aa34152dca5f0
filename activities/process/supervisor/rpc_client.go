package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/wire"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// The variables in the environment of a side.
const (
	envFD       = "CLUSTERRUN_SUPERVISOR_FD"
	envState    = "CLUSTERRUN_SUPERVISOR_STATE"
	envInstance = "CLUSTERRUN_SUPERVISOR_INSTANCE"
	envVersion  = "CLUSTERRUN_SUPERVISOR_VERSION"
)

// Client sends requests to a supervisor. It is safe for concurrent use; a call ends with its
// context, and every call fails with [ErrLost] once the supervisor has died.
type Client struct {
	rpc      *rpc.Client
	lost     chan struct{}
	once     sync.Once
	calls    atomic.Uint64
	dir      string
	instance string
	version  string
	pid      int
}

var _ API = (*Client)(nil)

// NewClient returns a client over a connection that a supervisor serves.
func NewClient(conn net.Conn) *Client {
	c := &Client{lost: make(chan struct{})}
	c.rpc = rpc.NewClient(&watchedConn{Conn: conn, ended: func() { c.once.Do(func() { close(c.lost) }) }})
	return c
}

// NewOwnersClient returns the client of a side in the process of the owner, who has started
// the supervisor with that pid, state directory and instance, and with the other end of conn
// as OwnersSide in its [Config].
func NewOwnersClient(conn net.Conn, pid int, stateDir, instance string) *Client {
	c := NewClient(conn)
	c.dir, c.instance, c.pid = stateDir, instance, pid
	return c
}

// ClientFromEnv returns the client of a side. It removes the socket from the environment, so that no
// program started from here believes that it is a side.
func ClientFromEnv() (*Client, error) {
	text := os.Getenv(envFD)
	if text == "" {
		return nil, fmt.Errorf("%s is not set: no supervisor has started this process", envFD)
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s=%q is not a file descriptor", envFD, text)
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "supervisor")
	conn, err := net.FileConn(f)
	_ = f.Close() // FileConn has its own
	if err != nil {
		return nil, fmt.Errorf("the socket to the supervisor: %w", err)
	}
	c := NewClient(conn)
	c.dir, c.instance, c.version, c.pid = os.Getenv(envState), os.Getenv(envInstance), os.Getenv(envVersion), os.Getppid()
	for _, name := range []string{envFD, envState, envInstance, envVersion} {
		_ = os.Unsetenv(name)
	}
	return c, nil
}

// Instance returns the instance of the supervisor's state directory.
func (c *Client) Instance() string { return c.instance }

// Version returns the version of the supervisor's program; "" if it cannot be upgraded.
func (c *Client) Version() string { return c.version }

// StateDir returns the supervisor's state directory.
func (c *Client) StateDir() string { return c.dir }

// Lost returns a channel that is closed when the supervisor has exited.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Close ends the connection.
func (c *Client) Close() error { return c.rpc.Close() }

// SweepAfterLoss cleans up after the supervisor is lost: parent-death signals have killed the
// leaders of all tasks, and SweepAfterLoss kills the processes that these started, by cookie,
// session and cgroup. It returns the number of processes. If the next supervisor already has
// the state directory, that supervisor has swept.
func (c *Client) SweepAfterLoss(ctx context.Context) (int, error) {
	return sweepAfterLoss(ctx, c.dir, c.pid)
}

func call[R, A any](ctx context.Context, c *Client, method string, arg A) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	id := c.calls.Add(1)
	reply := new(R) // not shared: a reply may come after the caller has gone
	done := c.rpc.Go(serviceName+"."+method, wire.Call[A]{ID: id, Arg: arg}, reply, make(chan *rpc.Call, 1)).Done
	select {
	case got := <-done:
		if got.Error != nil {
			return none, clientError(got.Error)
		}
		return *reply, nil
	case <-ctx.Done():
		c.rpc.Go(serviceName+".GiveUp", id, new(bool), make(chan *rpc.Call, 1))
		return none, ctx.Err()
	}
}

func clientError(err error) error {
	if remote, ok := errors.AsType[rpc.ServerError](err); ok {
		return fromWire(string(remote))
	}
	if errors.Is(err, rpc.ErrShutdown) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return ErrLost
	}
	return fmt.Errorf("%w: %v", ErrLost, err)
}

// Attach implements [API].
func (c *Client) Attach(ctx context.Context, r AttachRequest) (AttachReply, error) {
	return call[AttachReply](ctx, c, "Attach", r)
}

// Start implements [API].
func (c *Client) Start(ctx context.Context, r StartRequest) (Process, error) {
	return call[Process](ctx, c, "Start", r)
}

// Renew implements [API].
func (c *Client) Renew(ctx context.Context, r RenewRequest) error {
	_, err := call[bool](ctx, c, "Renew", r)
	return err
}

// Wait implements [API].
func (c *Client) Wait(ctx context.Context, r ProcessRef) (Process, error) {
	return call[Process](ctx, c, "Wait", r)
}

// Grant implements [API].
func (c *Client) Grant(ctx context.Context, r GrantRequest) error {
	_, err := call[bool](ctx, c, "Grant", r)
	return err
}

// Lease implements [API].
func (c *Client) Lease(ctx context.Context, r PortLeaseRequest) (PortLeaseReply, error) {
	return call[PortLeaseReply](ctx, c, "Lease", r)
}

// Release implements [API].
func (c *Client) Release(ctx context.Context, r ReleaseRequest) (ProcessesReply, error) {
	return call[ProcessesReply](ctx, c, "Release", r)
}

// Processes implements [API].
func (c *Client) Processes(ctx context.Context, run runkey.Run) (ProcessesReply, error) {
	return call[ProcessesReply](ctx, c, "Processes", run)
}

// Unkept implements [API].
func (c *Client) Unkept(ctx context.Context) (UnkeptReply, error) {
	return call[UnkeptReply](ctx, c, "Unkept", true)
}

// Sample implements [API].
func (c *Client) Sample(ctx context.Context, r SampleRequest) (SampleReply, error) {
	return call[SampleReply](ctx, c, "Sample", r)
}

// Controllers implements [API].
func (c *Client) Controllers(ctx context.Context) (ControllersReply, error) {
	return call[ControllersReply](ctx, c, "Controllers", true)
}

// Serving implements [API].
func (c *Client) Serving(ctx context.Context) error {
	_, err := call[bool](ctx, c, "Serving", true)
	return err
}

// Leave implements [API].
func (c *Client) Leave(ctx context.Context) error {
	_, err := call[bool](ctx, c, "Leave", true)
	return err
}

// Closing implements [API].
func (c *Client) Closing(ctx context.Context) (ClosingReply, error) {
	return call[ClosingReply](ctx, c, "Closing", true)
}
