package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/retry"
)

// Instance is a running embedded server, as described by its ready file.
type Instance struct {
	PID       int       `json:"pid"`
	Address   string    `json:"address"`
	UI        string    `json:"ui,omitempty"`
	Namespace string    `json:"namespace"`
	Started   time.Time `json:"started,omitzero"`
	// Host, Boot, UID and Container identify where the server runs. Container contains its network
	// and process ID namespaces.
	Host      string `json:"host,omitempty"`
	Boot      string `json:"boot,omitempty"`
	UID       int    `json:"uid"`
	Container string `json:"container,omitempty"`
}

// elsewhere returns where the server runs if this process cannot use it, and "" if it can. A disk
// shared by machines or containers may contain another machine's or container's server.
func (s *Instance) elsewhere() string {
	switch {
	case s.Boot != proc.BootID() || s.UID != os.Getuid():
		return fmt.Sprintf("on the host %s as the user %d", s.Host, s.UID)
	case s.Container != "" && s.Container != container():
		// The server's loopback address and process ID mean something else in this container.
		return "in another container on this machine, " + s.Host
	}
	return ""
}

// container identifies this process's namespaces that a server must share with its clients.
func container() string {
	return proc.Namespace("net") + " " + proc.Namespace("pid")
}

// Home is a user's embedded server, in a directory.
type Home struct {
	Dir string
	// Program is the path of clusterrun-devserver. If it is empty, the program is looked up.
	Program string
}

// Database returns the server's database path.
func (h Home) Database() string { return filepath.Join(h.Dir, "clusterrun.db") }

// Log returns the server's log path.
func (h Home) Log() string { return filepath.Join(h.Dir, "server.log") }

// Key returns the path of the certificate and key that the server and its clients share.
func (h Home) Key() string { return filepath.Join(h.Dir, "key.pem") }

func (h Home) readyFile() string { return filepath.Join(h.Dir, "ready.json") }
func (h Home) dbLock() string    { return h.Database() + ".lock" }
func (h Home) startLock() string { return filepath.Join(h.Dir, "start.lock") }

const (
	// settleEvery is the interval between checks of a starting or stopping server.
	settleEvery = 3 * time.Millisecond
	// settleBound is the maximum time to wait for such a server. A start takes a third of a second,
	// or longer on a very busy machine.
	settleBound = 60 * time.Second
	stopBound   = 10 * time.Second
)

// Find returns the running server, or nil. It waits for a server that is just starting.
func (h Home) Find(ctx context.Context) (*Instance, error) {
	if _, err := os.Stat(h.startLock()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	starting, err := filelock.Wait(ctx, filelock.TryShared, h.startLock(), settleEvery)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("the embedded server of %s belongs to another user; choose another directory with --state-dir: %w", h.Dir, err)
	} else if err != nil {
		return nil, err
	}
	defer starting.Close()
	return h.settled(ctx)
}

// settled waits while a server exists but is not ready, because it is starting or stopping. The
// start lock must be held.
func (h Home) settled(ctx context.Context) (*Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, h.patience())
	defer cancel()
	for {
		held, err := filelock.IsHeld(h.dbLock())
		if err != nil || !held {
			return nil, err
		}
		// Read the ready file only after seeing that the lock is held, because a new server removes
		// an old ready file before it takes the lock.
		switch s := h.ready(); {
		case s != nil && s.elsewhere() == "":
			return s, nil
		case s != nil:
			return nil, fmt.Errorf("the embedded server of %s runs %s; choose another directory with --state-dir", h.Dir, s.elsewhere())
		}
		if retry.Sleep(ctx, settleEvery) != nil {
			return nil, fmt.Errorf("the embedded server (pid %s) holds its database but is not ready; kill it if that persists, and a command starts another; its log is %s", h.holder(), h.Log())
		}
	}
}

// patience returns how long a server may take to become ready. One that has run for longer has lost
// its ready file, or is stopping.
func (h Home) patience() time.Duration {
	if lock, err := os.Stat(h.dbLock()); err == nil && time.Since(lock.ModTime()) > settleBound {
		return stopBound
	}
	return settleBound
}

// ready reads the ready file. A server writes it completely or not at all.
func (h Home) ready() *Instance {
	b, err := os.ReadFile(h.readyFile())
	if err != nil {
		return nil
	}
	var s Instance
	if json.Unmarshal(b, &s) != nil || s.Address == "" {
		return nil
	}
	return &s
}

// holder returns the process ID that the server wrote to its lock.
func (h Home) holder() string {
	b, _ := os.ReadFile(h.dbLock())
	return strings.TrimSpace(string(b))
}
