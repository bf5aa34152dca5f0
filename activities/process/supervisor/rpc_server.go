package supervisor

import (
	"context"
	"net"
	"net/rpc"
	"sync"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/wire"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

const serviceName = "Supervisor"

// connection serves one side. Its calls run concurrently; calls that wait end when the side
// cancels them or is gone.
type connection struct {
	api  API
	ctx  context.Context
	mu   sync.Mutex
	open map[uint64]openCall
}

// openCall is a call that has been received but not answered.
type openCall struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// serve answers requests until the other end closes.
func serve(conn net.Conn, api API) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := rpc.NewServer()
	c := &connection{api: api, ctx: ctx, open: make(map[uint64]openCall)}
	if err := server.RegisterName(serviceName, c); err != nil {
		panic(err) // a method whose shape net/rpc does not take
	}
	// net/rpc waits for the calls in progress before it returns, and these may
	// wait for a process: the end of the connection must end them.
	server.ServeCodec(newOrderedCodec(&watchedConn{Conn: conn, ended: cancel}, c.received))
}

// watchedConn calls ended at the end of a connection.
type watchedConn struct {
	net.Conn
	ended func()
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.ended()
	}
	return n, err
}

// received opens a call in the order of the requests, so that no GiveUp can come
// before the call that it ends.
func (c *connection) received(args any) {
	call, ok := args.(interface{ Number() uint64 })
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithCancel(c.ctx)
	c.open[call.Number()] = openCall{ctx, cancel}
}

func answer[A, R any](c *connection, call wire.Call[A], reply *R, do func(context.Context, A) (R, error)) error {
	c.mu.Lock()
	open := c.open[call.ID]
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.open, call.ID)
		c.mu.Unlock()
		open.cancel()
	}()
	got, err := do(open.ctx, call.Arg)
	if err != nil {
		return toWire(err)
	}
	*reply = got
	return nil
}

// GiveUp ends the wait of a call whose caller has gone.
func (c *connection) GiveUp(id uint64, _ *bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call, ok := c.open[id]; ok {
		call.cancel()
	}
	return nil
}

func (c *connection) Attach(call wire.Call[AttachRequest], reply *AttachReply) error {
	return answer(c, call, reply, c.api.Attach)
}

func (c *connection) Start(call wire.Call[StartRequest], reply *Process) error {
	return answer(c, call, reply, c.api.Start)
}

func (c *connection) Renew(call wire.Call[RenewRequest], reply *bool) error {
	return answer(c, call, reply, func(ctx context.Context, r RenewRequest) (bool, error) {
		return true, c.api.Renew(ctx, r)
	})
}

func (c *connection) Wait(call wire.Call[ProcessRef], reply *Process) error {
	return answer(c, call, reply, c.api.Wait)
}

func (c *connection) Grant(call wire.Call[GrantRequest], reply *bool) error {
	return answer(c, call, reply, func(ctx context.Context, r GrantRequest) (bool, error) {
		return true, c.api.Grant(ctx, r)
	})
}

func (c *connection) Lease(call wire.Call[PortLeaseRequest], reply *PortLeaseReply) error {
	return answer(c, call, reply, c.api.Lease)
}

func (c *connection) Release(call wire.Call[ReleaseRequest], reply *ProcessesReply) error {
	return answer(c, call, reply, c.api.Release)
}

func (c *connection) Processes(call wire.Call[runkey.Run], reply *ProcessesReply) error {
	return answer(c, call, reply, c.api.Processes)
}

func (c *connection) Unkept(call wire.Call[bool], reply *UnkeptReply) error {
	return answer(c, call, reply, func(context.Context, bool) (UnkeptReply, error) {
		return c.api.Unkept(c.ctx)
	})
}

func (c *connection) Sample(call wire.Call[SampleRequest], reply *SampleReply) error {
	return answer(c, call, reply, c.api.Sample)
}

func (c *connection) Controllers(call wire.Call[bool], reply *ControllersReply) error {
	return answer(c, call, reply, func(ctx context.Context, _ bool) (ControllersReply, error) {
		return c.api.Controllers(ctx)
	})
}

func (c *connection) Serving(call wire.Call[bool], reply *bool) error {
	return answer(c, call, reply, func(ctx context.Context, _ bool) (bool, error) {
		return true, c.api.Serving(ctx)
	})
}

func (c *connection) Leave(call wire.Call[bool], reply *bool) error {
	return answer(c, call, reply, func(ctx context.Context, _ bool) (bool, error) {
		return true, c.api.Leave(ctx)
	})
}

func (c *connection) Closing(call wire.Call[bool], reply *ClosingReply) error {
	return answer(c, call, reply, func(ctx context.Context, _ bool) (ClosingReply, error) {
		return c.api.Closing(ctx)
	})
}
