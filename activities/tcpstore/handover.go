package tcpstore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// Handover is the state of a frozen server, for another program that is executed in this
// process. It refers to descriptors, which must stay open.
type Handover struct {
	Listener int         `json:"listener"`
	Last     client      `json:"last"`
	Size     int         `json:"size"`
	Keys     []Key       `json:"keys,omitempty"`
	Clients  []Connected `json:"clients,omitempty"`
}

// Key is a key of a store, or one that clients wait for.
type Key struct {
	Key     []byte   `json:"key"`
	Known   bool     `json:"known,omitempty"`
	Value   []byte   `json:"value,omitempty"`
	Queue   [][]byte `json:"queue,omitempty"`
	Waiting []client `json:"waiting,omitempty"`
	Watched []client `json:"watched,omitempty"`
}

// Connected is a client of a store.
type Connected struct {
	ID     client `json:"id"`
	Socket int    `json:"socket"`
	// Numbers is how the client numbers its requests: 20, 21 or 22; 0 if it has made none.
	Numbers int    `json:"numbers,omitempty"`
	Watches bool   `json:"watches,omitempty"`
	Read    []byte `json:"read,omitempty"`   // bytes of requests that were not carried out
	Unsent  []byte `json:"unsent,omitempty"` // bytes of answers
}

// Files returns the descriptors.
func (h Handover) Files() []int {
	files := []int{h.Listener}
	for _, c := range h.Clients {
		files = append(files, c.Socket)
	}
	return files
}

// start runs f in a goroutine, unless the server is closed.
func (s *Server) start(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startLocked(f)
}

func (s *Server) startLocked(f func()) {
	s.working++
	s.done.Go(func() {
		f()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.working--
		s.parked.Broadcast()
	})
}

// park waits while the server is frozen.
func (s *Server) park() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parkLocked()
}

func (s *Server) parkLocked() {
	if !s.frozen.Load() {
		return
	}
	s.working--
	s.parked.Broadcast()
	for s.frozen.Load() {
		s.parked.Wait()
	}
	s.working++
}

// awaitRequest returns when a request has begun to arrive.
func (c *conn) awaitRequest() error {
	s := c.server
	for {
		s.mu.Lock()
		s.parkLocked()
		c.idle = true
		s.mu.Unlock()
		_, err := c.in.in.Peek(1)
		s.mu.Lock()
		s.parkLocked()
		c.idle = false
		s.mu.Unlock()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// Freeze stops the server between requests. It returns an error if a client does not send the
// rest of a request by then. Whatever it returns, [Server.Thaw] must be called if the process
// continues.
func (s *Server) Freeze(until time.Time) error {
	timer := time.AfterFunc(time.Until(until), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.parked.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen.Store(true)
	s.setDeadlines(time.Unix(1, 0))
	for s.working > 0 {
		if !time.Now().Before(until) {
			return fmt.Errorf("a client of the store at %s has sent half a request", s.listener.Addr())
		}
		s.parked.Wait()
		s.setDeadlines(time.Unix(1, 0)) // also for clients that have just connected
	}
	return nil
}

// Thaw lets a frozen server continue.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen.Store(false)
	s.setDeadlines(time.Time{})
	s.parked.Broadcast()
}

// setDeadlines sets the deadlines of everything that may block without limit, which excludes
// a request that has begun to arrive. s.mu must be held.
func (s *Server) setDeadlines(at time.Time) {
	if l, ok := s.listener.(*net.TCPListener); ok {
		_ = l.SetDeadline(at)
	}
	for _, c := range s.conns {
		if c.idle || at.IsZero() {
			_ = c.socket.SetReadDeadline(at)
		}
		_ = c.socket.SetWriteDeadline(at)
		c.mu.Lock()
		c.changed.Broadcast()
		c.mu.Unlock()
	}
}

// Handover returns the state of a frozen server.
func (s *Server) Handover() (Handover, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Handover{Last: s.last}
	var err error
	if h.Listener, err = descriptor(s.listener); err != nil {
		return h, err
	}
	for _, id := range slices.Sorted(maps.Keys(s.conns)) {
		c := s.conns[id]
		c.mu.Lock()
		closed, unsent := c.closed, bytes.Join(c.unsent, nil)
		c.mu.Unlock()
		if closed {
			s.store.leave(id)
			continue
		}
		fd, err := descriptor(c.socket)
		if err != nil {
			return h, err
		}
		read, _ := c.in.in.Peek(c.in.in.Buffered())
		h.Clients = append(h.Clients, Connected{
			ID: id, Socket: fd, Numbers: c.in.numbering(), Watches: c.in.watches, Read: bytes.Clone(read), Unsent: unsent,
		})
	}
	h.Keys, h.Size = s.store.handover(), s.store.size
	return h, nil
}

// descriptor returns the descriptor of a socket, which stays open with the socket.
func descriptor(socket any) (fd int, err error) {
	conn, ok := socket.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("a %T has no descriptor", socket)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	err = raw.Control(func(n uintptr) { fd = int(n) }) //nolint:gosec // a descriptor is an int
	return fd, err
}

// Resume serves the store of a frozen server. It takes over the descriptors.
func Resume(h Handover, log *zap.Logger) (*Server, error) {
	file := os.NewFile(uintptr(h.Listener), "store") //nolint:gosec // a descriptor
	listener, err := net.FileListener(file)
	_ = file.Close()
	if err != nil {
		return nil, fmt.Errorf("resuming a store: %w", err)
	}
	s := newServer(listener, log)
	s.store, s.last = resumeStore(h), h.Last
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, was := range h.Clients {
		file := os.NewFile(uintptr(was.Socket), "store client") //nolint:gosec // a descriptor
		socket, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			// Treat the client as if it had closed its connection.
			s.store.leave(was.ID)
			log.Warn("A client of a store is disconnected.", zap.Error(err))
			continue
		}
		c := newConn(s, socket, was.ID)
		c.in.in = bufio.NewReader(io.MultiReader(bytes.NewReader(was.Read), socket))
		c.in.numbers, c.in.watches = numbersOf(was.Numbers), was.Watches
		if len(was.Unsent) > 0 {
			c.unsent, c.size = net.Buffers{was.Unsent}, int64(len(was.Unsent)+overhead)
			s.unsent.Add(c.size)
		}
		s.conns[c.id] = c
		s.startLocked(c.read)
		s.startLocked(c.write)
	}
	s.startLocked(s.accept)
	return s, nil
}

// numberings has the numberings of requests under the names that a [Handover] uses.
var numberings = map[int][]op{20: numbers20, 21: numbers21, 22: numbers22}

func numbersOf(name int) []op { return numberings[name] }

func (r *reader) numbering() int {
	for name, numbers := range numberings {
		if len(r.numbers) > 0 && &r.numbers[0] == &numbers[0] {
			return name
		}
	}
	return 0
}

func (s *store) handover() []Key {
	names := map[string]bool{}
	for name := range s.keys {
		names[name] = true
	}
	for name := range s.queues {
		names[name] = true
	}
	for _, lists := range []map[string][]client{s.waiting, s.watches} {
		for name := range lists {
			names[name] = true
		}
	}
	keys := make([]Key, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value, known := s.keys[name]
		keys = append(keys, Key{
			Key: []byte(name), Known: known, Value: value, Queue: s.queues[name], Waiting: s.waiting[name], Watched: s.watches[name],
		})
	}
	return keys
}

func resumeStore(h Handover) *store {
	s := newStore()
	s.size = h.Size
	for _, k := range h.Keys {
		name := string(k.Key)
		if k.Known {
			s.keys[name] = k.Value
		}
		if len(k.Queue) > 0 {
			s.queues[name] = k.Queue
		}
		if len(k.Waiting) > 0 {
			s.waiting[name] = k.Waiting
		}
		if len(k.Watched) > 0 {
			s.watches[name] = k.Watched
		}
		for _, c := range k.Waiting {
			s.awaited[c]++
		}
	}
	return s
}
