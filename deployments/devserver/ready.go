package devserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Ready is the content of the ready file and the ready line.
type Ready struct {
	PID       int       `json:"pid"`
	Address   string    `json:"address"`
	UI        string    `json:"ui,omitempty"`
	Namespace string    `json:"namespace"`
	Database  string    `json:"database"`
	Server    string    `json:"server_version"`
	Started   time.Time `json:"started"`
	// Host, Boot, UID and Container identify where it runs, since several machines or containers
	// may share the file's disk. Container contains the namespaces of the network and of process
	// IDs, as named in /proc/self/ns.
	Host      string `json:"host,omitempty"`
	Boot      string `json:"boot,omitempty"`
	UID       int    `json:"uid"`
	Container string `json:"container,omitempty"`
}

// here sets where this process runs.
func (r *Ready) here() {
	r.Host, _ = os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	r.Boot, r.UID = strings.TrimSpace(string(boot)), os.Getuid()
	network, _ := os.Readlink("/proc/self/ns/net")
	processes, _ := os.Readlink("/proc/self/ns/pid")
	r.Container = network + " " + processes
}

// announce reports that clients can connect: first the file, then the line, so that a reader of the
// line finds the file.
func announce(r Ready, o Options, stdout io.Writer) error {
	if o.ReadyFile != "" {
		if err := writeReadyFile(o.ReadyFile, r); err != nil {
			return err
		}
	}
	if o.JSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	ui := ""
	if r.UI != "" {
		ui = ", Web UI at " + r.UI
	}
	_, err := fmt.Fprintf(stdout, "ready: Temporal server %s at %s%s, namespace %s, database %s\n",
		r.Server, r.Address, ui, r.Namespace, r.Database)
	return err
}

// writeReadyFile writes the server's address. Only its owner may read the file, because the address
// is sufficient to use a server without a key.
func writeReadyFile(path string, r Ready) error {
	doc, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := replaceFile(path, append(doc, '\n')); err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}

// prepareReadyFile removes a killed server's file, so that a client waiting for this server is not
// sent to a port that another program may have taken. If the file cannot be created, it fails now
// instead of after the start.
func prepareReadyFile(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--ready-file: %w", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("--ready-file: %w; create the directory, or choose another file", err)
	}
	return nil
}

// removeReadyFile removes this server's file, unless another server has replaced it since.
func removeReadyFile(path string) {
	doc, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var r Ready
	if json.Unmarshal(doc, &r) == nil && r.PID == os.Getpid() {
		_ = os.Remove(path)
	}
}
