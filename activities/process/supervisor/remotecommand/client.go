package remotecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Client is the other end of a command, with its streams and the messages to it.
type Client struct {
	In       io.Reader
	Out, Err io.Writer
	// Sizes has the sizes of the terminal, and Signals the names of signals for the command.
	Sizes   <-chan Size
	Signals <-chan string
	// Started, if not nil, is called when the command is running.
	Started func()
}

// ErrCut is returned if the connection ended before the command.
var ErrCut = errors.New("the connection was cut")

// Run starts a command over a connection, and returns how it has ended. It does not wait for a
// read of In. If an output cannot be written, Run returns the error.
func (c Client) Run(ctx context.Context, in io.Reader, out io.Writer, start Start) (End, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWire(in, out)
	if err := w.send(message{Start: &start}, nil); err != nil {
		return End{}, fmt.Errorf("%w: %w", ErrCut, err)
	}
	room := newRoom(window)
	defer room.close()
	for buf := make([]byte, maxPiece); ; {
		m, data, err := w.receive(buf)
		if err != nil {
			return End{}, fmt.Errorf("%w: %w", ErrCut, err)
		}
		switch {
		case m.End != nil:
			return *m.End, nil
		case m.Started:
			if c.Started != nil {
				c.Started()
			}
			go c.feed(w, room)
			go c.tell(ctx, w)
		case m.Taken > 0:
			room.add(m.Taken)
		case m.Stream == stdout:
			_, err = c.Out.Write(data)
		case m.Stream == stderr:
			_, err = c.Err.Write(data)
		}
		if err != nil {
			return End{}, err
		}
	}
}

// feed sends stdin when there is room.
func (c Client) feed(w *wire, room *room) {
	for buf := make([]byte, maxPiece/2); ; {
		n, err := c.In.Read(buf)
		for at := 0; at < n; {
			most := room.take(n - at)
			if most == 0 || w.send(message{Stream: stdin}, buf[at:at+most]) != nil {
				return
			}
			at += most
		}
		if err != nil {
			_ = w.send(message{EOF: true}, nil)
			return
		}
	}
}

// tell sends sizes and signals. An error shows in the connection.
func (c Client) tell(ctx context.Context, w *wire) {
	for {
		select {
		case size := <-c.Sizes:
			_ = w.send(message{Size: &size}, nil)
		case name := <-c.Signals:
			_ = w.send(message{Signal: name}, nil)
		case <-ctx.Done():
			return
		}
	}
}

// room counts the bytes that may be sent.
type room struct {
	mu     sync.Mutex
	more   *sync.Cond
	left   int
	closed bool
}

func newRoom(n int) *room {
	r := &room{left: n}
	r.more = sync.NewCond(&r.mu)
	return r
}

func (r *room) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
	r.more.Broadcast()
}

func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.more.Broadcast()
}

// take takes up to that many bytes, and waits for at least one. It returns 0 if room is closed.
func (r *room) take(most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.left == 0 && !r.closed {
		r.more.Wait()
	}
	if r.closed {
		return 0
	}
	n := min(most, r.left)
	r.left -= n
	return n
}
