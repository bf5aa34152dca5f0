package homeworker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/workers"
)

const (
	dialBound = 5 * time.Second
	// IdleExit is how long a home worker stays without commands and runs. The embedded server stops
	// after it.
	IdleExit = 5 * time.Minute
	idleLook = time.Second
	// idleBound limits how long the idle supervisor of submitted runs takes to exit.
	idleBound = 10 * time.Second
)

// Run runs a home's home worker. It calls say when commands can connect, or with the reason why the
// server is unreachable. It returns when ctx is done, or when no command has been connected for
// long enough.
func Run(ctx context.Context, h Home, log *zap.Logger, say func(text string)) error {
	_ = syscall.Umask(h.Umask)
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	s := &server{log: log, idle: IdleExit, exit: func(context.Context) bool { return true }}
	return s.serve(ctx, h, say, func(ctx context.Context) error {
		c, err := workers.Dial(ctx, h.Server, name, log, dialBound)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, c.Close)
		c.HookDir = h.StateDir
		all := &sides{Connection: c}
		s.attend, s.exit = all.attend, all.exit
		return nil
	})
}

// server accepts commands' connections.
type server struct {
	log    *zap.Logger
	idle   time.Duration
	attend func(*net.UnixConn) error
	// exit prepares the exit, unless runs need this process.
	exit    func(context.Context) bool
	users   atomic.Int64
	leaving atomic.Bool // new commands wait until this process has exited
	lock    *os.File    // held when leaving
}

// serve serves commands once connect has returned.
func (r *server) serve(ctx context.Context, h Home, say func(text string), connect func(context.Context) error) error {
	path, err := h.socket()
	if err != nil {
		return err
	}
	_ = os.Remove(path) // left by a home worker that was killed or is frozen; the command that starts us holds the lock
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := connect(ctx); err != nil {
		say(err.Error())
		return err
	}
	say(readyText)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	go r.leaveWhenIdle(ctx, h, path, l)
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		r.users.Add(1)
		go func() {
			defer r.users.Add(-1)
			defer conn.Close()
			if r.leaving.Load() {
				return
			}
			if err := r.greet(conn); err != nil {
				r.log.Error("a command is not being served", zap.Error(err))
			}
		}()
	}
}

// greet serves a command of this user.
func (r *server) greet(conn *net.UnixConn) error {
	if err := checkPeer(conn); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{'\n'}); err != nil {
		return err
	}
	return r.attend(conn)
}

func (r *server) leaveWhenIdle(ctx context.Context, h Home, path string, l *net.UnixListener) {
	look := time.NewTicker(idleLook)
	defer look.Stop()
	own, err := os.Stat(path)
	if err != nil {
		r.log.Error("the socket is missing", zap.Error(err))
		_ = l.Close()
		return
	}
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if r.users.Load() > 0 {
			last = time.Now()
			continue
		}
		_, err := os.Stat(h.StateDir)
		now, _ := os.Stat(path)
		replaced := now == nil || !os.SameFile(now, own)
		idle := !replaced && time.Since(last) > r.idle
		if idle && !r.leaveIdle(ctx, path) {
			last = time.Now()
			continue
		}
		if idle || replaced || errors.Is(err, fs.ErrNotExist) {
			l.SetUnlinkOnClose(!replaced)
			_ = l.Close()
			return
		}
	}
}

// leaveIdle reports whether this idle process must exit. Until it has exited, it holds the lock that
// commands need to start another home worker.
func (r *server) leaveIdle(ctx context.Context, path string) bool {
	lock, err := filelock.Try(path + ".lock")
	if err != nil {
		return false
	}
	r.leaving.Store(true)
	if r.users.Load() == 0 && r.exit(ctx) {
		r.lock = lock
		return true
	}
	r.leaving.Store(false)
	_ = lock.Close()
	return false
}

// checkPeer refuses processes of other users.
func checkPeer(conn *net.UnixConn) error {
	switch peer := proc.Peer(conn); {
	case peer == nil:
		return errors.New("the system does not report who is connecting")
	case int(peer.Uid) != os.Geteuid():
		return fmt.Errorf("process %d belongs to user %d", peer.Pid, peer.Uid)
	}
	return nil
}
