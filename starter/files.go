package starter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Process is one of a run's processes, with the location of its output, result, error, start,
// usage and stack files.
type Process struct {
	Task          string
	Rank, Attempt int
	// Host is the host that holds Dir. It is empty if the run's group may have moved since.
	Host, Dir string
}

// Files reads the files of a run's processes, from this machine or from the hosts that hold
// them.
type Files struct {
	run      *Run
	status   *Status
	services []spec.HostService
	clients  map[string]*hostservice.Client
	listings map[string]listing
}

// listing is a host's answer.
type listing struct {
	attempts map[int][]int
	err      error
}

// Files returns the run's current files. The caller must close the result.
func (r *Run) Files(ctx context.Context) (*Files, error) {
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	f := r.FilesOf(s)
	f.Learn(ctx)
	return f, nil
}

// FilesOf is like Files but takes a known status of the run.
func (r *Run) FilesOf(s *Status) *Files {
	return &Files{run: r, status: s, services: s.Services, clients: map[string]*hostservice.Client{}, listings: map[string]listing{}}
}

// Learn asks an ended run for its hosts' file services, unless all files are on this machine. A
// run without a worker does not answer, so only the files on this machine can be read.
func (f *Files) Learn(ctx context.Context) {
	elsewhere := func(p Process) bool { return f.Here(p.Dir) != nil }
	if s := f.status; !s.Open && !spec.IsPrivateQueue(s.Queue) && slices.ContainsFunc(f.Processes(), elsewhere) {
		f.services, _ = f.run.Services(ctx)
	}
}

// Close closes the connections to hosts.
func (f *Files) Close() {
	for _, c := range f.clients {
		c.Close()
	}
}

// Processes returns the processes that the run has reported. These are each task's last one and,
// if the run has ended, the earlier ones with files that were kept.
func (f *Files) Processes() (all []Process) {
	results := map[string]spec.TaskResult{}
	if f.status.Result != nil {
		for _, t := range f.status.Result.Tasks {
			results[t.Name] = t
		}
	}
	for _, t := range f.status.Tasks {
		exits := results[t.Name].Exits
		dirs := []string{t.LogDir}
		if len(exits) > 0 {
			dirs = nil
			for _, e := range exits[max(0, len(exits)-tasklog.KeepAttempts):] {
				dirs = append(dirs, e.LogDir)
			}
			dirs = slices.Compact(dirs) // two processes with the same number have the same directory
		}
		for _, dir := range dirs {
			if _, attempt, rank, ok := tasklog.SplitProcessDir(dir); ok {
				p := Process{Task: t.Name, Rank: rank, Attempt: attempt, Host: t.Host, Dir: dir}
				if dir != t.LogDir && f.status.Generation > 0 {
					p.Host = ""
				}
				all = append(all, p)
			}
		}
	}
	return all
}

// Here returns nil if a process's directory is on this machine or on a disk shared with it, and
// otherwise the reason. A host may report any path, so only a path named after the run counts.
func (f *Files) Here(dir string) error {
	runDir, _, _, ok := tasklog.SplitProcessDir(dir)
	if !ok || runDir != tasklog.RunDir(filepath.Dir(filepath.Dir(runDir)), f.status.RunID, f.status.ExecutionID) {
		return fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	_, err := os.Stat(dir)
	return err
}

// client returns a client for a host, or nil if the host does not serve files.
func (f *Files) client(host string) *hostservice.Client {
	at := slices.IndexFunc(f.services, func(s spec.HostService) bool { return s.Host == host })
	if host == "" || at < 0 {
		return nil
	}
	if f.clients[host] == nil {
		f.clients[host] = hostservice.NewClient(f.services[at], f.status.ExecutionID)
	}
	return f.clients[host]
}

// maxFile limits the size of a file to read, in bytes.
const maxFile = 16 << 20

// Read returns a file in a process's directory. The error is [fs.ErrNotExist] if it is neither
// on this machine nor on the host.
func (f *Files) Read(ctx context.Context, host, path string) ([]byte, error) {
	dir := filepath.Dir(path)
	if f.Here(dir) == nil {
		// A host worker in a container on this machine has files that only it can read.
		if b, _, err := tasklog.ReadFile(path, maxFile); !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	client := f.client(host)
	_, attempt, rank, ok := tasklog.SplitProcessDir(dir)
	if client == nil || !ok {
		return nil, fs.ErrNotExist
	}
	return client.ReadFile(ctx, rank, attempt, hostservice.FileName(filepath.Base(path)))
}

// ProcessesOf returns the directories of a task's processes on its host, in process order.
func (f *Files) ProcessesOf(ctx context.Context, t TaskStatus) (dirs []string, err error) {
	runDir, _, rank, ok := tasklog.SplitProcessDir(t.LogDir)
	if !ok {
		return nil, fs.ErrNotExist
	}
	var of map[int][]int
	if f.Here(t.LogDir) == nil {
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

// once caches a directory listing of this machine or a host's answer.
func (f *Files) once(key string, list func() (map[int][]int, error)) (map[int][]int, error) {
	known, ok := f.listings[key]
	if !ok {
		known.attempts, known.err = list()
		f.listings[key] = known
	}
	return known.attempts, known.err
}
