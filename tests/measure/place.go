package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// endBound is the longest time in which a command must end after a request.
	endBound = 10 * time.Second
	// outputShown is the length of the output that is shown of a command that failed, in bytes.
	outputShown = 2000
)

// Place is a directory and an environment in which launchers are measured.
type Place struct {
	// Dir holds the files of the launchers and of the measurement.
	Dir string
	// Env is the environment of launchers. If it is nil, they get the environment of this
	// process.
	Env []string
}

// command is a launcher that was started.
type command struct {
	*exec.Cmd
	output *os.File
	// ended is closed when it has ended; then err is why it failed.
	ended chan struct{}
	err   error
}

// start starts a command in a process group of its own, which is ended when ctx is done.
func (p *Place) start(ctx context.Context, argv []string) (*command, error) {
	output, err := os.CreateTemp(p.Dir, "output-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(output.Name())
	c := &command{Cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), output: output, ended: make(chan struct{})}
	c.Dir, c.Env, c.Stdout, c.Stderr = p.Dir, p.Env, output, output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = endBound
	if err := c.Cmd.Start(); err != nil {
		_ = output.Close()
		return nil, err
	}
	go func() {
		defer close(c.ended)
		c.err = c.Wait()
	}()
	return c, nil
}

// wait waits for the end of the command, and returns its error.
func (c *command) wait() error {
	<-c.ended
	defer c.output.Close()
	if c.err == nil {
		return nil
	}
	return c.failed(c.err)
}

func (c *command) failed(err error) error {
	text := make([]byte, outputShown)
	n, _ := c.output.ReadAt(text, 0)
	return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, strings.TrimSpace(string(text[:n])))
}

// end ends the command, with SIGTERM for all of its process group.
func (c *command) end() {
	select {
	case <-c.ended:
	default:
		_ = c.Cancel()
		select {
		case <-c.ended:
		case <-time.After(endBound):
		}
	}
	_ = c.wait()
}

// Time returns how long a command takes.
func (p *Place) Time(ctx context.Context, argv []string) (time.Duration, error) {
	started := time.Now()
	c, err := p.start(ctx, argv)
	if err != nil {
		return 0, err
	}
	err = c.wait()
	return time.Since(started), errors.Join(err, ctx.Err())
}

// Whole returns how long a launcher takes for n copies of a program that does nothing, from
// its start to its end.
func (p *Place) Whole(ctx context.Context, start Start, n int) (time.Duration, error) {
	argv, err := start(p.Dir, n, []string{"true"})
	if err != nil {
		return 0, err
	}
	return p.Time(ctx, argv)
}

// makePipe makes a pipe in a directory and opens it, without waiting for anybody else.
func makePipe(dir, name string, flags int) (*os.File, error) {
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make the pipe %s: %w", path, err)
	}
	return os.OpenFile(path, flags, 0)
}

// Output returns how many bytes of output a command has, and how long it takes.
func (p *Place) Output(ctx context.Context, argv []string) (size int64, took time.Duration, err error) {
	started := time.Now()
	c, err := p.start(ctx, argv)
	if err != nil {
		return 0, 0, err
	}
	<-c.ended
	took = time.Since(started)
	info, err := c.output.Stat()
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), took, errors.Join(c.wait(), ctx.Err())
}
