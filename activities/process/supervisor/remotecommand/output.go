package remotecommand

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Output executes a command without a client or stdin, and returns the end of its output, at most
// that many bytes, and its exit code. When the command has ended, or when ctx is done, it kills
// everything that is left of it. It returns when nothing is. Task is a process with the CPUs that
// the command gets.
func (e *Executor) Output(ctx context.Context, c Command, most int) (said []byte, code int, err error) {
	p, err := e.start(c, nil)
	if err != nil {
		return nil, 0, err
	}
	_ = p.stdin.Close()
	end := tail{most: most}
	var copies sync.WaitGroup
	for _, f := range p.outputs {
		copies.Go(func() { _, _ = io.Copy(&end, f) })
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
	}
	for pause := time.Duration(0); p.left(); pause = time.Second {
		time.Sleep(pause) // a process that waits in the kernel ends at any time, or never
		p.await(killTakes, func() { p.signalAll(unix.SIGKILL) })
	}
	code = p.finish()
	copies.Wait() // nothing that could write is left
	p.close()
	return end.kept, code, nil
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu   sync.Mutex
	most int
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-t.most):]...)
	t.kept = t.kept[max(0, len(t.kept)-t.most):]
	return len(b), nil
}
