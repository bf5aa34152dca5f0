package remotehosts

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// connect waits until the host worker connects to the server, and relays that connection.
func (s *service) connect(w http.ResponseWriter, r *http.Request) {
	conn, err := acceptFor(r.Context(), s.socket)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	relay(w, r, conn)
}

// relay combines a request's and its response's bodies into a stream, and joins it to conn.
func relay(w http.ResponseWriter, r *http.Request, conn stream) {
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		_ = conn.Close()
		return
	}
	defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })()
	// The response ends when this function returns, after conn has sent its last byte.
	go func() {
		_, _ = io.Copy(conn, r.Body)
		_ = conn.CloseWrite()
	}()
	_, _ = io.Copy(flushed{w, control}, conn)
	_ = conn.Close()
}

// acceptFor accepts a connection unless ctx is done first. It must not be called concurrently.
func acceptFor(ctx context.Context, l *net.UnixListener) (*net.UnixConn, error) {
	type accepted struct {
		conn *net.UnixConn
		err  error
	}
	c := make(chan accepted)
	go func() {
		conn, err := l.AcceptUnix()
		select {
		case c <- accepted{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
		}
	}()
	select {
	case a := <-c:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// exchange combines a request's two bodies into a stream.
type exchange struct {
	io.ReadCloser
	*io.PipeWriter
}

func (e exchange) CloseWrite() error { return e.PipeWriter.Close() }

func (e exchange) Close() error { return errors.Join(e.ReadCloser.Close(), e.PipeWriter.Close()) }

// flushed flushes after each write.
type flushed struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// tunnel connects the host worker to the server, until ctx is done or the host is lost.
func (h *host) tunnel(ctx context.Context, dial func(context.Context) (net.Conn, error)) {
	for ctx.Err() == nil {
		theirs, ours := io.Pipe()
		response, err := h.post(ctx, "/connections", theirs)
		if err != nil {
			return // watch reports that the connection is closed
		}
		go func() {
			there := exchange{response.Body, ours}
			server, err := dial(ctx)
			if err != nil {
				_ = there.Close() // it will try again
				return
			}
			defer context.AfterFunc(ctx, func() { _ = server.Close() })()
			join(there, server.(stream))
		}()
	}
}
