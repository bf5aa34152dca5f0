package cgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// OOMCounter is the kernel's count of the processes that it has killed to free memory.
type OOMCounter struct {
	Path string // of the kernel's file
	// Scope is "cgroup" if it counts in the cgroup of this process, and "host" if it counts
	// everywhere. It is empty if there is no such counter.
	Scope string
}

// OwnOOM returns the counter for this process and the processes that it starts.
func OwnOOM() OOMCounter {
	self, mounts := ownFiles()
	return ownOOM(self, mounts, "/proc/vmstat")
}

func ownOOM(self, mounts []byte, host string) OOMCounter {
	// The cgroup may be one without a counter of its own. Version 2 counts in all cgroups above.
	for dir := find(self, mounts, ""); len(dir) > 1; dir = filepath.Dir(dir) {
		if _, ok := OOMKills(dir); ok {
			return OOMCounter{filepath.Join(dir, oomEvents), "cgroup"}
		}
	}
	// Version 1 counts where the killed process was.
	if dir := find(self, mounts, "memory"); dir != "" {
		if path := filepath.Join(dir, "memory.oom_control"); hasOOMKills(path) {
			return OOMCounter{path, "cgroup"}
		}
	}
	if hasOOMKills(host) {
		return OOMCounter{host, "host"}
	}
	return OOMCounter{}
}

// Count returns the number of processes that were killed since the boot.
func (c OOMCounter) Count() int {
	n, _ := oomKills(c.Path)
	return n
}

const oomEvents = "memory.events"

// OOMKills returns how many processes of a cgroup of version 2 the kernel has killed to free
// memory. ok is false if it does not count them.
func OOMKills(dir string) (n int, ok bool) { return oomKills(filepath.Join(dir, oomEvents)) }

func hasOOMKills(path string) bool {
	_, ok := oomKills(path)
	return ok
}

func oomKills(path string) (n int, ok bool) {
	raw, _ := os.ReadFile(path)
	for line := range bytes.Lines(raw) {
		if text, is := bytes.CutPrefix(line, []byte("oom_kill ")); is {
			n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
			return n, err == nil
		}
	}
	return 0, false
}
