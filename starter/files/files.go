package files

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
	"github.com/clusterrun/clusterrun/workflows/outcome"
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
	status *outcome.Status
	// services queries a finished run for its hosts' services; see [Files.learn].
	services       func(context.Context) ([]spec.HostService, error)
	asked, unknown bool
	allHere        bool // whether all reported processes' files are on this machine
	hosts          []*host
	here           map[string]listing // by run directory on this machine
}

// listing holds the processes that have files at a place; see [tasklog.Attempts].
type listing struct {
	attempts map[int][]int
	err      error
}

// Of returns a run's files, given its status. The function services queries the run for its hosts'
// services. The caller must close the result.
func Of(s *outcome.Status, services func(context.Context) ([]spec.HostService, error)) *Files {
	f := &Files{services: services, here: map[string]listing{}}
	f.update(s)
	return f
}

// update sets the run's current status.
func (f *Files) update(s *outcome.Status) {
	f.status = s
	f.serve(s.Services)
}

// learn queries a finished run for its hosts' services. A run without a worker does not answer,
// so only this machine's files can be read. A private queue's host workers exited with the run.
func (f *Files) learn(ctx context.Context) {
	if f.status.Open || f.asked || spec.IsPrivateQueue(f.status.Queue) {
		return
	}
	f.asked = true
	served, err := f.services(ctx)
	f.unknown = err != nil
	f.serve(served)
}

// Close closes the connections to hosts.
func (f *Files) Close() {
	for _, h := range f.hosts {
		h.client.Close()
	}
}

// Processes returns the processes that the run has reported. These are each task's last process
// and, if the run has ended, the earlier processes whose files were kept.
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
	_, attempt, rank, ok := tasklog.SplitProcessDir(dir)
	h := f.hostNamed(ctx, host)
	if h == nil || !ok {
		return nil, fs.ErrNotExist
	}
	return h.client.ReadFile(ctx, rank, attempt, hostservice.FileName(filepath.Base(path)))
}

// ProcessesOf returns the directories of a task's processes on its host, in process order.
func (f *Files) ProcessesOf(ctx context.Context, t outcome.TaskStatus) (dirs []string, err error) {
	runDir, _, rank, ok := tasklog.SplitProcessDir(t.LogDir)
	if !ok {
		return nil, fs.ErrNotExist
	}
	var of listing
	if f.Here(t.LogDir) == nil {
		if of, ok = f.here[runDir]; !ok {
			of.attempts, of.err = tasklog.Attempts(runDir)
			f.here[runDir] = of
		}
	} else if h := f.hostNamed(ctx, t.Host); h == nil {
		return nil, fs.ErrNotExist
	} else {
		of = h.list(ctx)
	}
	for _, n := range of.attempts[rank] {
		dirs = append(dirs, tasklog.ProcessDir(runDir, n, rank))
	}
	return dirs, of.err
}
