package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/detach"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// IdleExit is the time without clients after which a background server exits.
const IdleExit = 10 * time.Minute

// Ensure returns the running server, or starts one in the background. A new server listens at the
// "host:port" prefer if that is free. The default is a killed server's address, so that links to it
// stay valid.
func (h Home) Ensure(ctx context.Context, prefer string) (*Instance, error) {
	s, err := h.Find(ctx)
	if s != nil || err != nil {
		return s, err
	}
	starting, err := h.lockForStart(ctx)
	if err != nil {
		return nil, err
	}
	defer starting.Close()
	// Another process may have started the server in the meantime.
	if s, err := h.settled(ctx); s != nil || err != nil {
		return s, err
	}
	if killed := h.ready(); killed != nil && prefer == "" {
		prefer = killed.Address
	}
	for attempt := 1; ; attempt++ {
		port := 0
		if attempt < startAttempts {
			port = freePort(prefer)
		}
		s, err := h.startBackground(ctx, port)
		if err == nil || ctx.Err() != nil || attempt == startAttempts {
			return s, err
		}
	}
}

// startAttempts is how many times a server that does not become ready is started. Such a server may
// have been killed during its start, its port may have been taken, or another server may have
// briefly locked its database.
const startAttempts = 3

// startBackground starts a server that outlives us. The start lock must be held.
func (h Home) startBackground(ctx context.Context, port int) (*Instance, error) {
	cmd, err := h.command("--headless", "--port", strconv.Itoa(port), "--ui-port", "0", "--idle-exit", IdleExit.String())
	if err != nil {
		return nil, err
	}
	// The server outlives the terminal, and also serves other shells.
	s, err := h.launch(ctx, cmd, detach.Start, make(chan error, 1))
	if err != nil {
		// The previous holder of the start lock may have been killed while its server was starting.
		// That server holds the database, and is used.
		if other, _ := h.settled(ctx); other != nil {
			return other, nil
		}
	}
	return s, err
}

// Foreground is a server, or a Web UI, that stops with the process that started it.
type Foreground struct {
	Instance
	lifeline *os.File
	cmd      *exec.Cmd
	exited   chan error
}

// StartForeground starts a server that runs until the caller stops it or dies. It replaces a
// running server, and the old server's clients follow.
func (h Home) StartForeground(ctx context.Context, port, uiPort int, extra ...string) (*Foreground, error) {
	starting, err := h.lockForStart(ctx)
	if err != nil {
		return nil, err
	}
	defer starting.Close()
	for attempt := 1; ; attempt++ {
		if err := h.stopRunning(ctx); err != nil {
			return nil, err
		}
		f, err := h.startForeground(ctx, port, uiPort, extra...)
		if err == nil || ctx.Err() != nil || attempt == startAttempts {
			return f, err
		}
	}
}

func (h Home) startForeground(ctx context.Context, port, uiPort int, extra ...string) (*Foreground, error) {
	args := append([]string{"--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort), "--lifeline-fd", "3"}, extra...)
	cmd, err := h.command(args...)
	if err != nil {
		return nil, err
	}
	f, theirs, err := foreground(cmd)
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	s, err := h.launch(ctx, cmd, (*exec.Cmd).Start, f.exited)
	if err != nil {
		f.lifeline.Close()
		return nil, err
	}
	f.Instance = *s
	return f, nil
}

// foreground makes a command stop when this process exits. The command gets the other end of the
// lifeline as descriptor 3.
func foreground(cmd *exec.Cmd) (f *Foreground, theirs *os.File, err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.ExtraFiles = []*os.File{theirs}
	// Ctrl-C is for this process, which decides the order of stopping.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &Foreground{lifeline: ours, cmd: cmd, exited: make(chan error, 1)}, theirs, nil
}

// Exited returns a channel that receives the server's error when it has exited, and is then closed.
func (f *Foreground) Exited() <-chan error { return f.exited }

// Stop stops the server and waits until it has exited.
func (f *Foreground) Stop(ctx context.Context) error {
	f.lifeline.Close()
	select {
	case <-f.exited:
		return nil
	case <-ctx.Done():
		return f.cmd.Process.Kill()
	}
}

// stopRunning asks the running server to exit, and waits until its database is free. The start lock
// must be held.
func (h Home) stopRunning(ctx context.Context) error {
	s, err := h.settled(ctx)
	if s == nil || err != nil {
		return err
	}
	// The lock was held a moment ago, so this is the server's process.
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the embedded server (pid %d): %w", s.PID, err)
	}
	for {
		held, err := filelock.IsHeld(h.dbLock())
		if err != nil || !held {
			return err
		}
		if err := retry.Sleep(ctx, settleEvery); err != nil {
			return fmt.Errorf("the embedded server (pid %d) cannot be stopped: %w", s.PID, err)
		}
	}
}

func (h Home) lockForStart(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	return filelock.Wait(ctx, filelock.Try, h.startLock(), settleEvery)
}

func (h Home) command(args ...string) (*exec.Cmd, error) {
	path, err := h.program()
	if err != nil {
		return nil, err
	}
	args = append([]string{"--db", h.Database(), "--ready-file", h.readyFile(), "--key", h.Key()}, args...)
	cmd := exec.Command(path, args...)
	cmd.Dir = h.Dir
	cmd.Env = environment()
	return cmd, nil
}

// environment returns the variables that the server inherits. The server outlives the run that
// started it, so it must not inherit that run's variables: if a task of a run started us, they mark
// processes that are killed with the run.
func environment() []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "USER", "LOGNAME", "TZ", "LANG", "LC_ALL", "GOMAXPROCS"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if cookie := supervisor.OwnSideCookie(); cookie != "" {
		env = append(env, cookie) // makes its supervisor ignore the server
	}
	return env
}

// launch starts the server with start and waits until it is ready. exited receives its exit error.
// The start lock must be held.
func (h Home) launch(ctx context.Context, cmd *exec.Cmd, start func(*exec.Cmd) error, exited chan error) (*Instance, error) {
	if err := checkFiles(); err != nil {
		return nil, err
	}
	if err := os.Remove(h.readyFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	log, from, err := detach.OpenLog(h.Log(), maxLog)
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	defer log.Close()
	cmd.Stderr = log // stdin and stdout are /dev/null
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	go func() {
		exited <- cmd.Wait()
		close(exited)
	}()

	ctx, cancel := context.WithTimeout(ctx, settleBound)
	defer cancel()
	for {
		if s := h.ready(); s != nil {
			return s, nil
		}
		select {
		case err := <-exited:
			return nil, fmt.Errorf("the embedded server did not start (%w): %s", err, h.logSince(from))
		default:
		}
		if err := retry.Sleep(ctx, settleEvery); err != nil {
			// Clients would not find the server, so it must not keep running.
			_ = cmd.Process.Kill()
			return nil, fmt.Errorf("the embedded server did not become ready: %w; its log is %s", err, h.Log())
		}
	}
}

// minFiles counts the files that a started server has open, plus some for connections.
const minFiles = 40

// checkFiles refuses to start a server that cannot open its files, because such a server would
// neither become ready nor report why. Go programs raise their soft limit to the hard one.
func checkFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Max < minFiles {
		return fmt.Errorf("the embedded server needs %d open files, but a process may have %d on this machine; raise the limit: ulimit -n", minFiles, limit.Max)
	}
	return nil
}

// maxLog is the maximum size of a log, which contains only errors; a larger one is emptied.
const maxLog = 4 << 20

// logSince returns the log of a server that failed to start.
func (h Home) logSince(offset int64) string {
	b, err := os.ReadFile(h.Log())
	if err != nil || int64(len(b)) <= offset {
		return "it printed nothing; its log is  " + h.Log()
	}
	said := bytes.TrimSpace(b[offset:])
	const most = 2000
	if len(said) > most {
		said = said[len(said)-most:]
	}
	return string(bytes.TrimPrefix(said, []byte(ProgramName+": ")))
}

// freePort returns an address's port if no process listens on it, and 0 otherwise.
func freePort(address string) int {
	if address == "" {
		return 0
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
