package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// The tests run this binary again: as a supervisor, which must own all children of its process, and
// as its side, which connects the test to it.
const roleVar = "CLUSTERRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envFD) != "":
		os.Exit(sideMain())
	case os.Getenv(roleVar) != "":
		os.Exit(supervisorMain(os.Getenv(roleVar)))
	}
	os.Exit(m.Run())
}

// role configures a test's supervisor.
type role struct {
	Dir          string
	NoCgroups    bool
	NoChildren   bool   // as if the kernel did not list children
	Lifeline     bool   // descriptor 3
	OwnersSide   bool   // descriptor 4, and a volatile state
	SidePID      int    // of the owner's side
	Instance     string // of a new state directory
	Owner        string // the directory of the owner's stdin, stdout and stderr
	OrphanGrace  time.Duration
	LongestGrace time.Duration
	KillBound    time.Duration
	PortsLapse   time.Duration
	// Unkillable names a file; while it exists, SIGKILL does nothing.
	Unkillable string
	// LateKills makes processes that the reaper kills die right after it lists the children.
	LateKills bool
	// Files are arguments of ulimit, for the supervisor.
	Files string
	// Events gets a line for each event that a test waits for.
	Events string
	// SlowSide makes the side stay after closing until signaled.
	SlowSide bool
	// Next is the program file for upgrades. Version is a file with the program's version.
	Next, Version string
	// SideDaemon makes the side start a process that should outlive everything.
	SideDaemon bool
}

func supervisorMain(text string) int {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	state, err := OpenStateWith(r.Dir, StateOptions{Instance: r.Instance, Volatile: r.OwnersSide})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	cfg := Config{
		State: state, NoCgroups: r.NoCgroups,
		OrphanGrace: r.OrphanGrace, LongestGrace: r.LongestGrace, KillBound: r.KillBound, PortsLapse: r.PortsLapse,
		Log:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Ready: func() { event(r.Events, "ready %d", os.Getpid()) },
	}
	if r.Next != "" {
		cfg.Upgrade = &Upgrade{Path: r.Next, Version: r.program()}
	}
	if r.Lifeline {
		cfg.Lifeline = os.NewFile(3, "lifeline")
	}
	if r.OwnersSide {
		cfg.OwnersSide, cfg.OwnersSidePID = os.NewFile(4, "side"), r.SidePID
	}
	if r.Owner != "" {
		cfg.Owner = ownerIn(r.Owner)
	}
	k := linux()
	if r.NoChildren {
		k.children = (&childLister{self: os.Getpid()}).list
	}
	if r.Unkillable != "" {
		k.killCgroup = func(string) {}
		k.kill = func(pid int, sig syscall.Signal) error {
			if _, err := os.Stat(r.Unkillable); err == nil && sig == unix.SIGKILL {
				return nil
			}
			return unix.Kill(pid, sig)
		}
	}
	if r.LateKills {
		k.killLate()
	}
	ctx, stop := cfg.ObeySignals(context.Background(), []os.Signal{unix.SIGTERM, unix.SIGINT}, nil)
	goroutines, open := runtime.NumGoroutine(), descriptors()
	err = runWith(ctx, cfg, k)
	stop()
	// It holds unreleased runs' journals, and the lock, which was open before.
	if cerr := state.Close(); err == nil {
		err = cerr
	}
	// Stopped goroutines may still be running and hold a descriptor. Counting them is not enough,
	// because stop ended one of those counted earlier.
	for range 1000 {
		if runtime.NumGoroutine() <= goroutines && len(descriptors()) <= len(open) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	event(r.Events, "goroutines %d %d", goroutines, runtime.NumGoroutine())
	event(r.Events, "descriptors %d %d", len(open), len(descriptors()))
	event(r.Events, "open before %v, and after %v", open, descriptors())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return 0
}

// program pretends to be the program that the test put on disk, and returns its version.
func (r role) program() string {
	text, err := os.ReadFile(r.Version)
	if err != nil {
		return "1.0"
	}
	return string(text)
}

// descriptors returns what the open descriptors of this process refer to.
func descriptors() []string {
	entries, _ := os.ReadDir("/proc/self/fd")
	names := make([]string, len(entries))
	for i, e := range entries {
		name, _ := os.Readlink("/proc/self/fd/" + e.Name())
		names[i] = e.Name() + "=" + name
	}
	return names
}

func event(path, format string, args ...any) {
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	_, _ = fmt.Fprintf(f, format+"\n", args...)
}

// sideMain forwards requests from a socket in the state directory.
func sideMain() int {
	var r role
	if err := json.Unmarshal([]byte(os.Getenv(roleVar)), &r); err != nil {
		panic(err)
	}
	c, err := ClientFromEnv()
	if err != nil {
		panic(err)
	}
	path := sideSocket(c.StateDir())
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	if r.SideDaemon {
		// A daemon such as a side might leave behind: in its own session and orphaned immediately.
		cmd := exec.Command("/bin/sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
		out, err := cmd.Output()
		if err != nil {
			panic(err)
		}
		event(r.Events, "daemon %s", strings.TrimSpace(string(out)))
	}
	event(r.Events, "side %d", os.Getpid())
	if err := c.Hello(context.Background(), r.program()); err != nil && !errors.Is(err, ErrLost) {
		panic(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn, c)
		}
	}()
	closing := make(chan ClosingReply, 1)
	go func() {
		if reply, err := c.Closing(context.Background()); err == nil {
			closing <- reply
		}
	}()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	select {
	case <-c.Lost():
		killed, err := c.SweepAfterLoss(context.Background())
		event(r.Events, "swept %d %v", killed, err)
		return 0
	case <-terminated:
		return 0
	case reply := <-closing:
		event(r.Events, "closing %v", reply.OwnerGone)
	}
	if r.SlowSide {
		<-terminated
		event(r.Events, "side terminated")
		return 0
	}
	all, err := c.Processes(context.Background(), runkey.Run{})
	for _, p := range all.Processes {
		if p, err := c.Wait(context.Background(), ProcessRef{p.Key, p.Number}); err == nil {
			event(r.Events, "exit %s %d %s", p.Key.Task, p.Exit.Code, p.Exit.Reason)
		}
	}
	if err != nil && !errors.Is(err, ErrLost) {
		event(r.Events, "error %v", err)
	}
	return 0
}

func sideSocket(dir string) string {
	// Socket names must be short, unlike test directories.
	return filepath.Join(os.TempDir(), "clusterrun-side-"+strings.ReplaceAll(filepath.Base(filepath.Dir(dir)), "/", "")+".sock")
}

// killLate replaces kill(2). It sends SIGKILL for a single process after the reaper's last list in
// a pass, the second, and returns before the list is used.
func (k *kernel) killLate() {
	var mu sync.Mutex
	lists := make(map[int]int) // by pid, the lists that must come before
	list := k.children
	k.children = func() []int {
		children := list()
		mu.Lock()
		defer mu.Unlock()
		for pid := range lists {
			if lists[pid]--; lists[pid] > 0 {
				continue
			}
			delete(lists, pid)
			_ = unix.Kill(pid, unix.SIGKILL)
			for !gone(pid) {
				time.Sleep(time.Millisecond)
			}
		}
		return children
	}
	k.killCgroup = func(string) {}
	k.kill = func(pid int, sig syscall.Signal) error {
		if pid < 0 || sig != unix.SIGKILL {
			return unix.Kill(pid, sig)
		}
		mu.Lock()
		defer mu.Unlock()
		if lists[pid] == 0 {
			lists[pid] = 2
		}
		return nil
	}
}
