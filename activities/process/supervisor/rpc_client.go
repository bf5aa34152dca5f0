package supervisor

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// Environment variables of a side.
const (
	envFD       = "CLUSTERRUN_SUPERVISOR_FD"
	envState    = "CLUSTERRUN_SUPERVISOR_STATE"
	envInstance = "CLUSTERRUN_SUPERVISOR_INSTANCE"
	envVersion  = "CLUSTERRUN_SUPERVISOR_VERSION"
)

// Client sends requests to a supervisor. It is safe for concurrent use. A call returns when its
// context is done, and fails with [ErrLost] once the supervisor has died.
type Client struct {
	conn     net.Conn
	out      *sender
	lost     chan struct{}
	dir      string
	instance string
	version  string
	pid      int

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]waiting
}

// waiting is a request without an answer.
type waiting struct {
	result any // a pointer, for the answer
	failed chan error
}

var _ API = (*Client)(nil)

// NewClient returns a client over a connection that a supervisor serves.
func NewClient(conn net.Conn) *Client {
	c := &Client{conn: conn, out: newSender(conn), lost: make(chan struct{}), waiting: make(map[uint64]waiting)}
	go c.receive()
	return c
}

// NewOwnersClient returns the client of a side in another process. The owner must have started the
// supervisor, with the given pid, state directory and instance, and passed it the other end of conn
// as [Config.OwnersSide].
func NewOwnersClient(conn net.Conn, pid int, stateDir, instance string) *Client {
	c := NewClient(conn)
	c.dir, c.instance, c.pid = stateDir, instance, pid
	return c
}

// ClientFromEnv returns a side's client. It removes the socket from the environment, so that
// programs that this process starts do not act as sides.
func ClientFromEnv() (*Client, error) {
	text := os.Getenv(envFD)
	if text == "" {
		return nil, fmt.Errorf("%s is not set: this process was not started by a supervisor", envFD)
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

// Instance returns the state directory's instance.
func (c *Client) Instance() string { return c.instance }

// Version returns the supervisor program's version, or "" if it cannot be upgraded.
func (c *Client) Version() string { return c.version }

// StateDir returns the supervisor's state directory.
func (c *Client) StateDir() string { return c.dir }

// Lost returns a channel that is closed when the supervisor has exited.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// SweepAfterLoss cleans up after a lost supervisor. Parent-death signals have already killed all
// task leaders. SweepAfterLoss kills the processes that these leaders started, which it finds by
// cookie, session and cgroup, and returns their number. If the next supervisor already holds the
// state directory, it has done this, and SweepAfterLoss does nothing.
func (c *Client) SweepAfterLoss(ctx context.Context) (int, error) {
	return sweepAfterLoss(ctx, c.dir, c.pid)
}

// receive delivers answers until the connection closes.
func (c *Client) receive() {
	defer close(c.lost)
	for in := gob.NewDecoder(c.conn); ; {
		var a answer
		if in.Decode(&a) != nil {
			return
		}
		c.mu.Lock()
		w := c.waiting[a.ID]
		delete(c.waiting, a.ID)
		c.mu.Unlock()
		if a.Failed == nil && in.Decode(w.result) != nil { // Decode(nil) discards the value
			return
		}
		if w.failed != nil {
			w.failed <- a.Failed.err()
		}
	}
}

func call[R, A any](ctx context.Context, c *Client, method string, arg A) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	result := new(R) // not shared, because an answer may arrive after the caller has left
	w := waiting{result: result, failed: make(chan error, 1)}
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = w
	c.mu.Unlock()
	if err := c.out.send(request{id, method}, arg); err != nil {
		return none, fmt.Errorf("%w: %v", ErrLost, err)
	}
	var err error
	select {
	case err = <-w.failed:
	case <-c.lost:
		select {
		case err = <-w.failed: // the answer arrived earlier
		default:
			err = ErrLost
		}
	case <-ctx.Done():
		_ = c.out.send(request{ID: id})
		err = c.unanswered(ctx.Err())
	}
	if err != nil {
		return none, err
	}
	return *result, nil
}

// unansweredError reports that the supervisor did not answer before a deadline.
type unansweredError struct{ text string }

func (e *unansweredError) Error() string { return e.text }

func (e *unansweredError) Unwrap() error { return context.DeadlineExceeded }

// unanswered explains a context's error.
func (c *Client) unanswered(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if s, statErr := proc.ReadStat(c.pid); statErr == nil && s.State == 'T' {
		return &unansweredError{fmt.Sprintf("the supervisor is stopped by a signal; continue it with `kill -CONT %d`", c.pid)}
	}
	return &unansweredError{fmt.Sprintf("the supervisor (process %d) does not answer", c.pid)}
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

// Stop implements [API].
func (c *Client) Stop(ctx context.Context, r StopRequest) (TasksReply, error) {
	if r.Tasks != nil && len(r.Tasks) == 0 || r.Processes != nil && len(r.Processes) == 0 {
		// gob does not distinguish an empty list from nil, which would mean all tasks.
		return TasksReply{}, ctx.Err()
	}
	return call[TasksReply](ctx, c, "Stop", r)
}

// Signal implements [API].
func (c *Client) Signal(ctx context.Context, r SignalRequest) (TasksReply, error) {
	return call[TasksReply](ctx, c, "Signal", r)
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

// Hello implements [API].
func (c *Client) Hello(ctx context.Context, version string) error {
	_, err := call[bool](ctx, c, "Hello", version)
	return err
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
