package homeworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/build"
	"github.com/clusterrun/clusterrun/activities/system/detach"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/privatedir"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// Home is the place at which commands of a user that share a server find their home worker.
type Home struct {
	// StateDir is the state directory of the commands.
	StateDir string `json:"state_dir"`
	// Server is the server.
	Server connect.Options `json:"server"`
	// Umask is the umask of the commands, for files of the home worker.
	Umask int `json:"umask"`
}

// Of returns the home of a command.
func Of(stateDir string, server connect.Options) Home { return Home{stateDir, server, proc.Umask()} }

// HomeVar carries a [Home] to the home worker.
const HomeVar = "CLUSTERRUN_HOME_WORKER"

// readyText is the message of a home worker once commands can connect.
const readyText = "ready"

// UnreachedError is returned if a new home worker cannot reach the server.
type UnreachedError struct{ why string }

func (e *UnreachedError) Error() string { return e.why }

const (
	startBound = 20 * time.Second
	// greetBound is the time after which a home worker that does not greet is replaced.
	greetBound = 2 * time.Second
	startEvery = 3 * time.Millisecond
	maxLog     = 4 << 20
)

// socket returns the path of the socket.
func (h Home) socket() (string, error) {
	dir, err := privatedir.Sockets(h.StateDir, "home-worker", len("/0123456789.lock"))
	return filepath.Join(dir, h.digest()), err
}

// digest names what the users of a home worker share.
func (h Home) digest() string {
	shared := h.Server
	if shared.Embedded != "" {
		shared.Address = "" // it may change
	}
	server, _ := json.Marshal(shared) // it has only texts
	texts := []string{build.ID(), program(), string(server), proc.BootID(), fmt.Sprint(h.Umask, os.Getgid())}
	for _, ns := range []string{"mnt", "net", "pid", "user", "uts"} {
		texts = append(texts, proc.Namespace(ns))
	}
	if groups, err := os.Getgroups(); err == nil {
		texts = append(texts, fmt.Sprint(groups))
	}
	if root, err := os.Stat("/"); err == nil {
		if s, ok := root.Sys().(*syscall.Stat_t); ok {
			texts = append(texts, fmt.Sprint(s.Dev, s.Ino))
		}
	}
	if keys, err := os.Stat(h.Server.CodecKeys); err == nil {
		texts = append(texts, fmt.Sprint(keys.Size(), keys.ModTime())) // they are read once
	}
	if h.Server.Embedded == "" {
		texts = append(texts, h.settings()...)
	}
	return privatedir.Short(texts...)
}

// settings returns what else a connection to a server that is not embedded depends on.
func (h Home) settings() (texts []string) {
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "TEMPORAL_") {
			texts = append(texts, kv)
		}
	}
	slices.Sort(texts)
	file := cmp.Or(h.Server.ConfigFile, os.Getenv("TEMPORAL_CONFIG_FILE"))
	if config, err := os.UserConfigDir(); file == "" && err == nil {
		file = filepath.Join(config, "temporalio", "temporal.toml")
	}
	text, _ := os.ReadFile(file)
	return append(texts, string(text))
}

// program identifies the file of this program: builds of a modified work tree have the same ID.
func program() string {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	s, _ := self.Sys().(*syscall.Stat_t)
	return fmt.Sprint(s.Dev, s.Ino, s.Size, s.Mtim)
}

// dial connects to the home worker, and starts it if it does not run.
func (h Home) dial(ctx context.Context) (*net.UnixConn, error) {
	path, err := h.socket()
	if err != nil {
		return nil, err
	}
	if c, err := connectTo(path); err == nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		lock, err := filelock.Try(path + ".lock")
		if err == nil {
			defer lock.Close()
			break
		}
		if !errors.Is(err, filelock.ErrLocked) {
			return nil, err
		}
		if err := retry.Sleep(ctx, startEvery); err != nil {
			return nil, err
		}
	}
	// Another command may have started it since.
	if c, err := connectTo(path); err == nil {
		return c, nil
	}
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	return connectTo(path)
}

// connectTo connects to the home worker at a path, which greets by a byte. One that is frozen does not.
func connectTo(path string) (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(greetBound))
	var b [1]byte
	if _, err := c.Read(b[:]); err != nil {
		c.Close()
		return nil, err
	}
	return c, c.SetReadDeadline(time.Time{})
}

// start starts the home worker, and returns when it listens. The lock must be held.
func (h Home) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	log, _, err := detach.OpenLog(filepath.Join(h.StateDir, "home-worker.log"), maxLog)
	if err != nil {
		return err
	}
	defer log.Close()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	cmd := exec.Command(self, "home-worker")
	cmd.Dir, cmd.Env = "/", append(environment(), HomeVar+"="+string(text))
	cmd.Stdout, cmd.Stderr = theirs, log
	err = detach.Start(cmd)
	theirs.Close()
	if err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // it outlives us
	defer context.AfterFunc(ctx, func() { ours.Close() })()
	switch said, _ := io.ReadAll(ours); string(said) {
	case readyText:
		return nil
	case "":
		return fmt.Errorf("start the host worker of this home: it has ended at once; its log is %s", log.Name())
	default:
		return &UnreachedError{string(said)}
	}
}

// environment returns the variables of a home worker. They include no variable of the run of the command that
// starts it, since these would mark processes that end with that run.
func environment() []string {
	return slices.DeleteFunc(detach.Environ(os.Environ()), func(kv string) bool { return strings.HasPrefix(kv, "CLUSTERRUN_") })
}
