package homeworker

import (
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/system/detach"
	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/privatedir"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// Home identifies the home worker that a user's commands share for one server.
type Home struct {
	// StateDir is the commands' state directory.
	StateDir string `json:"state_dir"`
	// Server holds the options to connect to the server.
	Server connect.Options `json:"server"`
	// Umask is the commands' umask, applied to the home worker's files.
	Umask int `json:"umask"`
}

// Of returns a command's home.
func Of(stateDir string, server connect.Options) Home { return Home{stateDir, server, proc.Umask()} }

// HomeVar is the environment variable that passes a [Home] to the home worker.
const HomeVar = "CLUSTERRUN_HOME_WORKER"

// readyText is what a home worker reports once commands can connect.
const readyText = "ready"

// UnreachedError reports that a new home worker cannot reach the server.
type UnreachedError struct{ why string }

func (e *UnreachedError) Error() string { return e.why }

const (
	startBound = 20 * time.Second
	// greetBound limits the wait for a home worker's greeting. A home worker that does not greet is
	// replaced.
	greetBound = 2 * time.Second
	startEvery = 3 * time.Millisecond
	maxLog     = 4 << 20
)

// socket returns the socket's path.
func (h Home) socket() (string, error) {
	dir, err := privatedir.Sockets(h.StateDir, "home-worker", len("/0123456789.lock"))
	return filepath.Join(dir, h.digest()), err
}

// digest identifies what the users of a home worker share.
func (h Home) digest() string {
	shared := h.Server
	if shared.Embedded != "" {
		shared.Address = "" // it may change
	}
	server, _ := json.Marshal(shared) // it only contains strings
	texts := []string{supervise.BuildID(), program(), string(server), proc.BootID(), fmt.Sprint(h.Umask, os.Getgid())}
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

// settings returns any further settings that affect a connection to a non-embedded server.
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

// program identifies this program's file, because builds of a modified work tree share an ID.
func program() string {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	s, _ := self.Sys().(*syscall.Stat_t)
	return fmt.Sprint(s.Dev, s.Ino, s.Size, s.Mtim)
}

// dial connects to the home worker, starting it if it is not running.
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
	lock, err := filelock.Wait(ctx, filelock.Try, path+".lock", startEvery)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	// Another command may have started the home worker in the meantime.
	if c, err := connectTo(path); err == nil {
		return c, nil
	}
	for again := 2; ; again-- {
		c, err := h.startAndConnect(ctx, path)
		if err == nil || again == 0 || ctx.Err() != nil || starter.IsError[*UnreachedError](err) {
			return c, err
		}
		// The home worker may have been killed. It has not been asked for anything yet.
	}
}

// startAndConnect starts the home worker and connects to it. The lock must be held.
func (h Home) startAndConnect(ctx context.Context, path string) (*net.UnixConn, error) {
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	return connectTo(path)
}

// connectTo connects to the home worker at a path, which greets with a byte unless it is frozen.
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

// start starts the home worker and returns when it listens. The lock must be held.
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
		return fmt.Errorf("start this home's host worker: it exited immediately; its log is %s", log.Name())
	default:
		return &UnreachedError{string(said)}
	}
}

// environment returns the home worker's variables. They exclude those of the run that the starting
// command belongs to, because they would mark processes that die with that run.
func environment() []string {
	return slices.DeleteFunc(detach.Environ(os.Environ()), func(kv string) bool { return strings.HasPrefix(kv, "CLUSTERRUN_") })
}
