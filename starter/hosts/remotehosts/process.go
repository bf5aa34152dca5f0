package remotehosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a started agent.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	said   *tail
	exited chan struct{} // closed when it has exited
	err    error         // its result; valid after exited
}

// startProcess starts an agent. It is killed when this process exits, and does not receive our
// terminal's signals.
func startProcess(argv []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), said: &tail{}, exited: make(chan struct{})}
	p.cmd.Stderr = p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	// ssh's background processes that share its connection hold our pipes open.
	p.cmd.WaitDelay = time.Second
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig is sent when the thread that started the process exits.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			if err := p.cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
				p.err = err
			}
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// maxSaid limits how much of an agent's text is kept.
const maxSaid = 4 << 10

// tail keeps the last part of the text written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - maxSaid; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(b), nil
}

// lines returns the last lines.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(t.text) {
		if text := strings.TrimSpace(string(line)); text != "" {
			lines = append(lines, text)
		}
	}
	const most = 3
	return lines[max(0, len(lines)-most):]
}

// reason returns why a host's agent exited, in the agent's own words if it wrote any.
func (c Config) reason(err error, said []string) string {
	name := filepath.Base(c.Agent[0])
	code := -1
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	text := strings.TrimPrefix(strings.Join(said, "; "), name+": ")
	switch {
	case code == notThere && text == "":
		return "clusterrun is neither at the path where it is installed on this machine nor in the PATH of a command run by " + name + "; install it"
	case code == 2 && len(said) > 0 && strings.HasPrefix(said[len(said)-1], "clusterrun "):
		return c.otherVersion(said[len(said)-1])
	case text != "":
		return name + ": " + text
	case err == nil:
		return name + " has exited"
	}
	return fmt.Sprintf("%s: %s", name, err)
}
