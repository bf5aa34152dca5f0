package worker

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

	"github.com/clusterrun/clusterrun/activities/system/detach"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Detached holds, for a command that can run in the background, whether this process is the parent
// that was called or the child that the parent started.
type Detached struct {
	Detach bool
	// ready is the descriptor of a pipe, or 0 except in the child. The child writes to it when
	// it is ready. If the pipe closes first, the parent concludes that the child failed.
	ready int
}

const readyFlag = "ready-fd"

// Register adds the flags. until completes the usage of --detach with when it returns.
func (b *Detached) Register(cmd *cobra.Command, until string) {
	cmd.Flags().BoolVar(&b.Detach, "detach", false, "run in the background, and return when "+until)
	cmd.Flags().IntVar(&b.ready, readyFlag, 0, "descriptor `FD` of a pipe for what is printed at the start")
	_ = cmd.Flags().MarkHidden(readyFlag)
}

// Parent reports whether we were called to start another process.
func (b *Detached) Parent() bool { return b.Detach && b.ready == 0 }

// child reports whether we were started by a command that waits for us to be ready.
func (b *Detached) child() bool { return b.ready != 0 }

// CloseOnExec keeps our child processes from inheriting the pipe.
func (b *Detached) CloseOnExec() {
	if b.ready != 0 {
		syscall.CloseOnExec(b.ready)
	}
}

// Tell sends the text to print to the parent, if there is one.
func (b *Detached) Tell(text string) error {
	if b.ready == 0 {
		return nil
	}
	f := os.NewFile(uintptr(b.ready), "ready")
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		return fmt.Errorf("report that this process is ready: %w", err)
	}
	return nil
}

// daemon starts a program in a new session. The program writes to ready when it is ready.
type daemon func(log, ready *os.File) (*exec.Cmd, error)

// itself starts this program with everything inherited from its caller except open files.
func itself(args []string) daemon {
	return func(log, ready *os.File) (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find our own executable: %w", err)
		}
		if err := detach.Seal(); err != nil {
			return nil, err
		}
		cmd := exec.Command(self, append(args, fmt.Sprintf("--%s=%d", readyFlag, cli.FirstFD))...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.ExtraFiles = []*os.File{ready}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd, cmd.Start()
	}
}

// startDaemon starts a program in the background, and returns its process ID and what it writes
// when it is ready. name is used in messages and for the name of its log.
func startDaemon(ctx context.Context, a *cli.App, name string, start daemon) (pid int, text []byte, err error) {
	if err := os.MkdirAll(a.Global.StateDir, 0o700); err != nil {
		return 0, nil, fmt.Errorf("state directory: %w", err)
	}
	log, before, err := detach.OpenLog(daemonLog(a, name), maxDaemonLog)
	if err != nil {
		return 0, nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer log.Close()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer ours.Close()
	ctx, stop := cli.EndedBy(ctx)
	defer stop()
	cmd, err := start(log, theirs)
	theirs.Close()
	if err != nil {
		return 0, nil, fmt.Errorf("start %s in the background: %w", name, err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	if text, _ := io.ReadAll(ours); len(text) > 0 {
		return cmd.Process.Pid, text, nil
	}
	_ = cmd.Wait()
	said, _ := io.ReadAll(io.NewSectionReader(log, before, 1<<20))
	said = bytes.TrimPrefix(bytes.TrimSpace(said), []byte("clusterrun: "))
	code := cmd.ProcessState.ExitCode()
	if code <= 0 {
		code = exitcode.Machinery
	}
	return 0, nil, &cli.ExitError{Code: code, Cause: fmt.Errorf("%s (%s did not start: %s; its log is %s)", said, name, cmd.ProcessState, log.Name())}
}

func daemonLog(a *cli.App, name string) string { return filepath.Join(a.Global.StateDir, name+".log") }

// maxDaemonLog is the size above which a log is truncated.
const maxDaemonLog = 16 << 20

// DetachDev executes this command in the background.
func DetachDev(ctx context.Context, a *cli.App, portsGiven bool) error {
	if err := os.MkdirAll(a.Global.StateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if lock, err := filelock.Try(filepath.Join(a.Global.StateDir, cli.DevLock)); err == nil {
		lock.Close()
	} else if errors.Is(err, filelock.ErrLocked) && !portsGiven {
		pid := cli.DevPID(a.Global.StateDir)
		a.Say("`clusterrun dev` is already running as process %s; submit to it, or stop it first to change flags", pid)
		address := "unknown"
		if s, err := a.Home().Find(ctx); err == nil && s != nil {
			address = fmt.Sprintf("%s (namespace %s)", s.Address, s.Namespace)
		}
		_, err := io.WriteString(a.Out, DevText(cli.DevLink(a.Global.StateDir), address, a.LogsDir(), DevEnd))
		return err
	}
	_, text, err := startDaemon(ctx, a, "dev", itself(a.Args))
	if err != nil {
		return err
	}
	sayEndsWith(a)
	_, err = a.Out.Write(text)
	return err
}

// DevEnd is the command that stops a `clusterrun dev` in the background.
const DevEnd = "clusterrun dev stop"

// DevText describes a running `clusterrun dev`, and how to use and stop it. link is empty if it
// does not serve pages.
func DevText(link, address, logs, end string) string {
	text := ""
	if link != "" {
		text = "Pages            " + link + "\n"
	}
	if end != DevEnd {
		end += fmt.Sprintf(" (while runs are open: twice within %s)", ConfirmWithin)
	}
	return text + fmt.Sprintf("Temporal server  %s\nQueue            %s\nLogs             %s\nSubmit with      clusterrun submit SPEC\nStop with        %s\n",
		address, spec.TaskQueue, logs, end)
}
