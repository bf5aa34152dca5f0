package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/filelock"
)

// detached is how a dev that is to run in the background knows which of the two
// processes it is: the one that was called, or the one that this starts.
type detached struct {
	detach bool
	// ready is the descriptor of a pipe on which the child tells that it is ready,
	// and by whose end the parent sees that it never will be. 0: we are no child.
	ready int
}

const readyFlag = "ready-fd"

func (b *detached) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&b.detach, "detach", false, "run in the background, and return when runs can be submitted")
	cmd.Flags().IntVar(&b.ready, readyFlag, 0, "descriptor `FD` of a pipe for what is printed at the start")
	_ = cmd.Flags().MarkHidden(readyFlag)
}

// parent reports whether we were called to start another process.
func (b *detached) parent() bool { return b.detach && b.ready == 0 }

// closeOnExec keeps the pipe from the processes that we start.
func (b *detached) closeOnExec() {
	if b.ready != 0 {
		syscall.CloseOnExec(b.ready)
	}
}

// tell gives the parent, if there is one, what is to be printed.
func (b *detached) tell(text string) error {
	if b.ready == 0 {
		return nil
	}
	f := os.NewFile(uintptr(b.ready), "ready")
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		return fmt.Errorf("tell that dev is ready: %w", err)
	}
	return nil
}

// detachDev starts this very command in a session of its own, and returns when it
// is ready.
func (a *app) detachDev(ctx context.Context, portsGiven bool) error {
	if err := os.MkdirAll(a.global.stateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if lock, err := filelock.Try(filepath.Join(a.global.stateDir, devLock)); err == nil {
		lock.Close()
	} else if errors.Is(err, filelock.ErrLocked) && !portsGiven {
		pid := devPID(a.global.stateDir)
		a.say("`clusterrun dev` runs already, as process %s; `kill %s` ends it", pid, pid)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	path := filepath.Join(a.global.stateDir, "dev.log")
	log, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log of dev: %w", err)
	}
	defer log.Close()
	before, err := log.Stat()
	if err != nil {
		return fmt.Errorf("log of dev: %w", err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	ctx, stop := endedBy(ctx)
	defer stop()
	cmd := exec.Command(self, append(a.args, fmt.Sprintf("--%s=%d", readyFlag, lifelineFD))...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start dev in the background: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	text, _ := io.ReadAll(ours)
	if len(text) > 0 {
		_, err := a.out.Write(text)
		return err
	}
	_ = cmd.Wait()
	said, _ := io.ReadAll(io.NewSectionReader(log, before.Size(), 1<<20))
	said = bytes.TrimPrefix(bytes.TrimSpace(said), []byte("clusterrun: "))
	code := cmd.ProcessState.ExitCode()
	if code <= 0 {
		code = exitMachinery
	}
	return &exitError{code: code, cause: fmt.Errorf("%s (dev did not start: %s; its log is %s)", said, cmd.ProcessState, path)}
}
