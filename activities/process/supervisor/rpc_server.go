package supervisor

import (
	"bufio"
	"context"
	"encoding/gob"
	"net"
	"sync"
)

// A side sends requests, each followed by its argument. The supervisor sends the answers in any
// order, each followed by the result unless there is an error.
type (
	request struct {
		ID     uint64
		Method string // "" abandons the request with this ID, whose answer is no longer needed
	}
	answer struct {
		ID     uint64
		Failed *failure
	}
)

// methods maps names to a side's requests.
var methods = map[string]method{
	"Attach":      with(API.Attach),
	"Start":       with(API.Start),
	"Renew":       withoutResult(API.Renew),
	"Wait":        with(API.Wait),
	"Grant":       withoutResult(API.Grant),
	"Stop":        with(API.Stop),
	"Signal":      with(API.Signal),
	"Lease":       with(API.Lease),
	"Release":     with(API.Release),
	"Processes":   with(API.Processes),
	"Unkept":      unkept,
	"Sample":      with(API.Sample),
	"Controllers": with(func(api API, ctx context.Context, _ bool) (ControllersReply, error) { return api.Controllers(ctx) }),
	"Hello":       withoutResult(API.Hello),
	"Serving":     withoutResult(func(api API, ctx context.Context, _ bool) error { return api.Serving(ctx) }),
	"Leave":       withoutResult(func(api API, ctx context.Context, _ bool) error { return api.Leave(ctx) }),
	"Closing":     with(func(api API, ctx context.Context, _ bool) (ClosingReply, error) { return api.Closing(ctx) }),
}

// method reads an argument and returns the call with it. side is canceled when the connection
// closes.
type method func(arg *gob.Decoder) (call func(ctx, side context.Context, api API) (any, error), err error)

func with[A, R any](do func(API, context.Context, A) (R, error)) method {
	return func(d *gob.Decoder) (func(ctx, side context.Context, api API) (any, error), error) {
		var arg A
		err := d.Decode(&arg)
		return func(ctx, _ context.Context, api API) (any, error) { return do(api, ctx, arg) }, err
	}
}

func withoutResult[A any](do func(API, context.Context, A) error) method {
	return with(func(api API, ctx context.Context, arg A) (bool, error) { return true, do(api, ctx, arg) })
}

// unkept calls Unkept of the [API]. The call has effect until the connection closes.
func unkept(d *gob.Decoder) (func(ctx, side context.Context, api API) (any, error), error) {
	var none bool
	err := d.Decode(&none)
	return func(_, side context.Context, api API) (any, error) { return api.Unkept(side) }, err
}

// server serves one side. Its calls run concurrently. Calls that wait return when the side cancels
// them or is gone.
type server struct {
	api API
	out *sender

	mu   sync.Mutex
	open map[uint64]context.CancelFunc
}

// serve answers requests until the connection closes and all calls have returned.
func serve(conn net.Conn, api API) {
	side, cancel := context.WithCancel(context.Background())
	s := &server{api: api, out: newSender(conn), open: make(map[uint64]context.CancelFunc)}
	var calls sync.WaitGroup
	defer func() {
		cancel()
		calls.Wait()
		_ = conn.Close()
	}()
	for in := gob.NewDecoder(conn); ; {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		if r.Method == "" {
			s.close(r.ID)
			continue
		}
		read, known := methods[r.Method]
		if !known {
			return // a side that speaks the protocol sends no other
		}
		call, err := read(in)
		if err != nil {
			return
		}
		// Register the call before reading the next request, which may cancel it.
		ctx, end := context.WithCancel(side)
		s.mu.Lock()
		s.open[r.ID] = end
		s.mu.Unlock()
		calls.Go(func() {
			defer s.close(r.ID)
			result, err := call(ctx, side, api)
			if err != nil {
				err = s.out.send(answer{r.ID, failureOf(err)})
			} else {
				err = s.out.send(answer{ID: r.ID}, result)
			}
			if err != nil {
				_ = conn.Close() // the message may be partly written
			}
		})
	}
}

// close cancels a call.
func (s *server) close(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end := s.open[id]; end != nil {
		end()
		delete(s.open, id)
	}
}

// sender writes messages to a connection.
type sender struct {
	mu  sync.Mutex
	buf *bufio.Writer
	enc *gob.Encoder
}

func newSender(conn net.Conn) *sender {
	buf := bufio.NewWriter(conn)
	return &sender{buf: buf, enc: gob.NewEncoder(buf)}
}

func (s *sender) send(parts ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range parts {
		if err := s.enc.Encode(part); err != nil {
			return err
		}
	}
	return s.buf.Flush()
}
