package measure

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Launch returns how long a launcher takes from its start until n copies of a program are
// running.
func (p *Place) Launch(ctx context.Context, l *Launcher, n int) (time.Duration, error) {
	started := time.Now()
	c, err := p.launch(ctx, l.Launch, n, script(holding))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	_, at, err := c.await(ctx, n)
	if err != nil {
		return 0, err
	}
	return at.Sub(started), c.finish(l.Stays)
}

// Restart returns the time from a program's failure to its next start.
func (p *Place) Restart(ctx context.Context, l *Launcher) (time.Duration, error) {
	c, err := p.launch(ctx, l.Restart, 1, script(failingOnce))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	_, failed, err := c.await(ctx, 1)
	if err != nil {
		return 0, err
	}
	_, again, err := c.await(ctx, 1)
	if err != nil {
		return 0, err
	}
	return again.Sub(failed), c.finish(l.Stays)
}

// EndAfterFailure returns how long the last of n copies takes to exit after one fails.
func (p *Place) EndAfterFailure(ctx context.Context, start Start, n int) (time.Duration, error) {
	return p.end(ctx, start, n, "failure")
}

// EndAfterChief returns the time from the chief's exit until the last of n tasks exits.
func (p *Place) EndAfterChief(ctx context.Context, start Start, n int) (time.Duration, error) {
	return p.end(ctx, start, n, "chief")
}

func (p *Place) end(ctx context.Context, start Start, n int, after string) (time.Duration, error) {
	c, err := p.launch(ctx, start, n, script(endingFirst), after)
	if err != nil {
		return 0, err
	}
	defer c.abort()
	if _, _, err = c.await(ctx, n); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.gone.SetReadDeadline(time.Now()) })
	defer stop()
	if _, err := c.signal.WriteString("end\n"); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c.gone, make([]byte, 1)); err != nil {
		return 0, err
	}
	ended := time.Now()
	if _, err := io.ReadAll(c.gone); err != nil {
		return 0, err
	}
	took := time.Since(ended)
	return took, exitedWith(c.wait())
}

// Memory returns a launcher's memory while n copies of a program are running, including the
// processes returned by Beside, but without the copies.
func (p *Place) Memory(ctx context.Context, l *Launcher, n int) (int64, error) {
	c, err := p.launch(ctx, l.Launch, n, script(holding))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	pids, _, err := c.numbers(ctx, n)
	if err != nil {
		return 0, err
	}
	tree := below(c.Process.Pid, pids)
	if l.Beside != nil {
		tree = append(tree, l.Beside()...)
	}
	size, err := Resident(tree)
	if err != nil {
		return 0, err
	}
	return size, c.finish(l.Stays)
}

// Left kills a launcher that has started n copies, and counts the copies that are left after a
// while.
func (p *Place) Left(ctx context.Context, l *Launcher, n int, after time.Duration) (left int, err error) {
	c, err := p.launch(ctx, l.Launch, n, script(holding))
	if err != nil {
		return 0, err
	}
	defer c.abort()
	pids, _, err := c.numbers(ctx, n)
	if err != nil {
		return 0, err
	}
	handles := make([]int, 0, n)
	defer func() {
		for _, fd := range handles {
			_ = syscall.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := pidfd(pid)
		if err != nil {
			return 0, fmt.Errorf("copy %d: %w", pid, err)
		}
		handles = append(handles, fd)
	}
	if err := c.Process.Kill(); err != nil {
		return 0, err
	}
	killed := time.Now()
	for _, fd := range handles {
		ended, err := endsWithin(fd, time.Until(killed.Add(after)))
		if err != nil {
			return 0, err
		}
		if !ended {
			left++
		}
	}
	return left, nil
}
