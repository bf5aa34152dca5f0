package supervise

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Main runs the program and returns its exit code.
func Main(args []string) int {
	if len(args) == 1 && args[0] == versionFlag {
		fmt.Println(BuildID())
		return exitcode.OK
	}
	text, ok := os.LookupEnv(settingsVar)
	if !ok || len(args) > 0 {
		fmt.Fprintf(os.Stderr, "%s is started by clusterrun itself; use `clusterrun worker`\n", ProgramName)
		return exitcode.Usage
	}
	if err := run(text); err != nil {
		fmt.Fprintf(os.Stderr, "clusterrun: %s%s\n", err, fault.LimitOf(err))
		return exitcode.Machinery
	}
	return exitcode.OK
}

// run runs the supervisor with the given settings.
func run(text string) error {
	if err := proc.SetUndumpable(); err != nil {
		return fmt.Errorf("closing this process to others of its user: %w", err)
	}
	// Task processes must not inherit it.
	if err := os.Unsetenv(settingsVar); err != nil {
		return err
	}
	var s Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%s: %w", settingsVar, err)
	}
	if err := s.checkBuild(); err != nil {
		return err
	}
	out := NewLogFile(os.Stderr)
	defer out.Sync() //nolint:errcheck // it has none
	log := newLogger(out, s.Debug)
	c := supervisor.Config{
		Side: append([]string{s.Starter}, s.Side...), Program: inherited(s.Files.Program), SideEnv: s.SideEnv,
		Lifeline:   inherited(s.Files.Lifeline),
		OwnersSide: inherited(s.Files.Side), OwnersSidePID: s.SidePID,
		OwnersLink: inherited(s.Files.Link),
		Owner: supervisor.Owner{
			Stdin: inherited(s.Files.Stdin), Stdout: inherited(s.Files.Stdout), Stderr: inherited(s.Files.Stderr),
		},
		OrphanGrace: s.OrphanGrace, LongestGrace: s.LongestGrace, SoleRun: s.SoleRun,
		Log:     log,
		Serving: s.serving(log),
		Ignored: supervisor.Ignored(), // before anybody listens
	}
	ends, upgrades := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, []os.Signal(nil)
	if v := s.Service; v != nil {
		c.Upgrade = &supervisor.Upgrade{Path: v.Program, Version: v.Version}
		// If there is a terminal, SIGHUP comes from the terminal or its shell.
		if !hasTerminal() {
			ends, upgrades = ends[:2], ends[2:]
		}
	}
	ctx, stop := c.ObeySignals(context.Background(), ends, upgrades)
	defer stop()
	var err error
	if c.State, err = supervisor.OpenStateWith(s.StateDir, supervisor.StateOptions{Instance: s.Instance, Volatile: s.Volatile}); err != nil {
		return err
	}
	defer c.State.Close()
	if s.Service != nil {
		context.AfterFunc(ctx, func() { tellService(log, serviceStopping) })
	}
	go ReturnMemory(ctx)
	return supervisor.Run(ctx, c)
}

// inherited returns the file with descriptor fd, or nil if fd is 0.
func inherited(fd int) *os.File {
	if fd == 0 {
		return nil
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), fmt.Sprintf("file %d", fd)) //nolint:gosec // a descriptor
}

func newLogger(out io.Writer, debug bool) *slog.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// serving returns the function to call each time a side starts to serve.
func (s Settings) serving(log *slog.Logger) func() {
	ready := inherited(s.Files.Ready)
	note := sync.OnceFunc(func() {
		_, _ = ready.WriteString("ready")
		_ = ready.Close()
	})
	return func() {
		if s.Service != nil {
			tellService(log, serviceReady)
		}
		if ready != nil {
			note()
		}
	}
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
