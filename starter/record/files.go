package record

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Files reads files of the processes of a run from this machine, or from the host that has
// them. It never opens a path on this machine that another host names. The zero value reads
// nothing.
type Files struct {
	// Execution is the ID of the run's first execution.
	Execution string
	Services  []spec.HostService
	// Own is the name of this machine. Logs is our log directory of the run: all files below it
	// belong to the run, and any host may have written them.
	Own, Logs string
	// IsOwn reports whether an address belongs to this machine.
	IsOwn func(address string) bool

	clients  map[string]*hostservice.Client
	listings map[string]listing
}

// listing is the answer of a host.
type listing struct {
	attempts map[int][]int
	err      error
}

// FilesOf returns the files of a run. logs is the log directory of this machine.
func FilesOf(s *starter.Status, logs string) *Files {
	own, _ := os.Hostname() // an empty name matches no host
	return &Files{Execution: s.ExecutionID, Services: s.Services, Own: own, Logs: tasklog.RunDir(logs, s.RunID, s.ExecutionID), IsOwn: remotehosts.IsOwnAddress}
}

// Learn asks an ended run for the services of its hosts, unless all of its tasks have their
// files here. If no worker executes the run, it does not answer, and nothing is learned.
func (f *Files) Learn(ctx context.Context, r *starter.Run, s *starter.Status) {
	elsewhere := func(t starter.TaskStatus) bool { return t.LogDir != "" && !f.IsHere(t.Host, t.LogDir) }
	if !s.Open && !spec.IsPrivateQueue(s.Queue) && slices.ContainsFunc(s.Tasks, elsewhere) {
		f.Services, _ = r.Services(ctx)
	}
}

// Close closes the connections to hosts.
func (f *Files) Close() {
	for _, c := range f.clients {
		c.Close()
	}
}

// IsHere reports whether a path that a host names is on this machine.
func (f *Files) IsHere(host, path string) bool {
	if host != "" && host == f.Own {
		return true
	}
	if below, err := filepath.Rel(f.Logs, path); f.Logs != "" && err == nil && filepath.IsLocal(below) {
		return true
	}
	s := f.service(host)
	if s == nil {
		return false
	}
	address, _, err := net.SplitHostPort(s.Address)
	return err == nil && f.IsOwn(address)
}

// service returns the service of a host, or nil if it has none.
func (f *Files) service(host string) *spec.HostService {
	if at := slices.IndexFunc(f.Services, func(s spec.HostService) bool { return s.Host == host }); host != "" && at >= 0 {
		return &f.Services[at]
	}
	return nil
}

// client returns a client of a host, or nil if it serves no files.
func (f *Files) client(host string) *hostservice.Client {
	service := f.service(host)
	if service == nil {
		return nil
	}
	if f.clients[host] == nil {
		if f.clients == nil {
			f.clients = map[string]*hostservice.Client{}
		}
		f.clients[host] = hostservice.NewClient(*service, f.Execution)
	}
	return f.clients[host]
}

// maxFile is the largest size of a file that is read, in bytes.
const maxFile = 16 << 20

// Read returns the content of a file in the directory of a process. Its error is
// [fs.ErrNotExist] if the file can be read neither here nor from its host.
func (f *Files) Read(ctx context.Context, host, path string) ([]byte, error) {
	if f.IsHere(host, path) {
		// A host worker in a container of this machine has files that only it can read.
		if b, _, err := tasklog.ReadFile(path, maxFile); !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	client := f.client(host)
	_, attempt, rank, ok := tasklog.SplitProcessDir(filepath.Dir(path))
	if client == nil || !ok {
		return nil, fs.ErrNotExist
	}
	return client.ReadFile(ctx, rank, attempt, hostservice.FileName(filepath.Base(path)))
}

// Processes returns the directories of the processes of a task that a host has, the first
// process first.
func (f *Files) Processes(ctx context.Context, t starter.TaskStatus) (dirs []string, err error) {
	runDir, _, rank, ok := tasklog.SplitProcessDir(t.LogDir)
	if !ok {
		return nil, fs.ErrNotExist
	}
	var of map[int][]int
	if f.IsHere(t.Host, t.LogDir) {
		of, err = f.once(runDir, func() (map[int][]int, error) { return tasklog.Attempts(runDir) })
	} else if client := f.client(t.Host); client == nil {
		err = fs.ErrNotExist
	} else {
		of, err = f.once("host "+t.Host, func() (map[int][]int, error) {
			l, err := client.List(ctx)
			return l.Attempts, err
		})
	}
	for _, n := range of[rank] {
		dirs = append(dirs, tasklog.ProcessDir(runDir, n, rank))
	}
	return dirs, err
}

// once lists a directory of this machine, or asks a host, once.
func (f *Files) once(key string, list func() (map[int][]int, error)) (map[int][]int, error) {
	known, ok := f.listings[key]
	if !ok {
		known.attempts, known.err = list()
		if f.listings == nil {
			f.listings = map[string]listing{}
		}
		f.listings[key] = known
	}
	return known.attempts, known.err
}
