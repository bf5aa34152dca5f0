package bench

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Barrier measures one barrier round. It runs n copies of a program, which only meet at a
// barrier, and returns the median of the durations that they write to the pipe marks.
func (p *Place) Barrier(ctx context.Context, start Start, n int, program []string) (time.Duration, error) {
	c, err := p.launch(ctx, start, n, program)
	if err != nil {
		return 0, err
	}
	defer c.abort()
	numbers, _, err := c.numbers(ctx, n)
	if err != nil {
		return 0, err
	}
	var took Series
	for _, ns := range numbers {
		took = append(took, time.Duration(ns))
	}
	return took.Median(), c.finish(false)
}

// LocalBarrier is Barrier for one host, with the client in Go.
func (p *Place) LocalBarrier(ctx context.Context, l *Launcher, n, rounds int) (time.Duration, error) {
	return p.Barrier(ctx, l.Launch, n, append(slices.Clone(p.program), "barrier", strconv.Itoa(rounds)))
}

// Exchange is the minimum time for a barrier round over a Unix socket: a byte from each of n
// programs, and then a byte to each.
func (p *Place) Exchange(ctx context.Context, n, rounds int) (time.Duration, error) {
	path := filepath.Join(p.Dir, "exchange")
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return 0, err
	}
	served := make(chan error, 1)
	go func() { served <- exchange(l, n) }()
	took, err := p.Barrier(ctx, Shell().Launch, n, append(slices.Clone(p.program), "exchange", path, strconv.Itoa(rounds)))
	_ = l.Close()
	if end := <-served; !errors.Is(end, net.ErrClosed) {
		err = errors.Join(err, end)
	}
	return took, err
}

func exchange(l net.Listener, n int) error {
	var mu sync.Mutex
	var waiting []net.Conn
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			b := make([]byte, 1)
			for {
				if _, err := c.Read(b); err != nil {
					return
				}
				mu.Lock()
				waiting = append(waiting, c)
				if len(waiting) == n {
					for _, w := range waiting {
						_, _ = w.Write(b)
					}
					waiting = waiting[:0]
				}
				mu.Unlock()
			}
		}()
	}
}
