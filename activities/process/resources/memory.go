package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory this host worker may use: the machine's memory or, if
// lower, the limit of its cgroups. It returns 0 if neither is known.
func Memory() int64 { return readMemory("/") }

func readMemory(root string) int64 {
	least, _ := memInfo(root, "MemTotal")
	for _, path := range memoryLimits(root) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && n > 0 && (least == 0 || n < least) {
			least = n // "max" does not parse, and version 1 uses the largest number instead
		}
	}
	return least
}

// memInfo returns a size in root's proc/meminfo, in bytes, such as MemTotal.
func memInfo(root, field string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not report %s", field)
}

// memoryLimits returns the limit files of this process's cgroups, including their ancestors.
func memoryLimits(root string) []string {
	b, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(b)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		dir, name := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if fields[1] != "memory" {
				continue
			}
			dir, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for at := filepath.Clean("/" + fields[2]); ; at = filepath.Dir(at) {
			files = append(files, filepath.Join(root, dir, at, name))
			if at == "/" {
				break
			}
		}
	}
	return files
}
