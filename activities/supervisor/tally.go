package supervisor

import "sync"

// tally counts functions that are being called. Unlike with a [sync.WaitGroup], one may wait
// while others begin, and give up the wait.
type tally struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when n is 0; nil if nobody waits
}

// Go calls f in a new goroutine.
func (t *tally) Go(f func()) {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
	go func() {
		defer t.end()
		f()
	}()
}

func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.ended != nil {
		close(t.ended)
		t.ended = nil
	}
}

// none returns a channel that is closed as soon as no function is being called.
func (t *tally) none() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n > 0 && t.ended != nil {
		return t.ended
	}
	ended := make(chan struct{})
	if t.n == 0 {
		close(ended)
		return ended
	}
	t.ended = ended
	return ended
}
