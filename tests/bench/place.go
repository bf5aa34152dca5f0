package bench

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
	// endBound is the maximum time for a command to exit on request.
	endBound = 10 * time.Second
	// outputShown limits how much output of failed commands is shown, in bytes.
	outputShown = 2000
)

// Place is a directory and an environment for measuring launchers.
type Place struct {
	// Dir contains files for the launchers and the measurement.
	Dir string
	// Env is the launchers' environment. If nil, they inherit this process's environment.
	Env []string
	// program is the command line of Program, without a name.
	program []string
}

// command is a started launcher.
type command struct {
	*exec.Cmd
	output *os.File
	// ended is closed when the command has exited; err is then the reason for a failure.
	ended chan struct{}
	err   error
}

// start starts a command in a new process group, which is killed when ctx is done.
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

// wait waits until the command exits, and returns its error.
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

// end sends SIGTERM to the command's process group.
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

// Whole returns how long a launcher takes from start to exit for n copies of a program that does
// nothing.
func (p *Place) Whole(ctx context.Context, start Start, n int) (time.Duration, error) {
	argv, err := start(p.Dir, n, []string{"true"})
	if err != nil {
		return 0, err
	}
	return p.Time(ctx, argv)
}

// makePipe creates a pipe in a directory and opens it, without waiting for another process.
func makePipe(dir, name string, flags int) (*os.File, error) {
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make the pipe %s: %w", path, err)
	}
	return os.OpenFile(path, flags, 0)
}

// Output returns a command's output size in bytes, and how long it takes.
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
