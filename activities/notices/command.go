package notices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// killDelay is the time for which the output of a killed command is still read: a child that has
// left the process group may hold it open.
const killDelay = time.Second

// Command is a command that receives a notice on its stdin.
type Command struct {
	Path, Dir string
	Args, Env []string
	User      *hostuser.User
	// Bound is the time after which it is killed, with its process group.
	Bound time.Duration
}

// Run runs the command. The error of one that has failed quotes the end of its output.
func (c Command) Run(ctx context.Context, stdin []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.Bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Path)
	cmd.Args, cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = c.Args, c.Dir, c.Env, bytes.NewReader(stdin), killDelay
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if u := c.User; u != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%s took longer than %s, and was killed", c.Args[0], c.Bound)
	case errors.As(err, &exit):
		err = fmt.Errorf("%s ended with %s", c.Args[0], exit)
	}
	if words := said.String(); words != "" {
		err = fmt.Errorf("%w, and wrote: %s", err, words)
	}
	return err
}

// tail keeps the last bytes that are written to it.
type tail struct{ kept []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-maxAnswer):]
	return len(b), nil
}

// String returns the end of the written text, on one line.
func (t *tail) String() string {
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(t.kept), "\uFFFD")), " ")
	return shorten.Middle(words, maxWords, " … ")
}
