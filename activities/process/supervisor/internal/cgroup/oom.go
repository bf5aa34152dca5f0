package cgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// OOMCounter is the kernel's counter of processes killed to free memory.
type OOMCounter struct {
	Path string // the kernel's file
	// Scope is "cgroup" if the count covers this process's cgroup, "host" if it covers the whole
	// host, and empty if there is no counter.
	Scope string
}

// OwnOOM returns the counter that covers this process and its descendants.
func OwnOOM() OOMCounter {
	self, mounts := ownFiles()
	return ownOOM(self, mounts, "/proc/vmstat")
}

func ownOOM(self, mounts []byte, host string) OOMCounter {
	// The cgroup may lack its own counter. Version 2 also counts in all its ancestors.
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

// Count returns the number of processes killed since boot.
func (c OOMCounter) Count() int {
	n, _ := oomKills(c.Path)
	return n
}

const oomEvents = "memory.events"

// OOMKills returns how many processes in a version 2 cgroup the kernel killed to free memory. ok is
// false if they are not counted.
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
