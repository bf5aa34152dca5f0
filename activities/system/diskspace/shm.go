package diskspace

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ShmDir is the directory of shared memory.
const ShmDir = "/dev/shm"

// ShmFile is a file in shared memory.
type ShmFile struct {
	Name   string
	Size   int64 // the memory that it holds, in bytes
	device uint64
	inode  uint64
}

// ShmBytes returns the memory that files occupy.
func ShmBytes(files []ShmFile) (n int64) {
	for _, f := range files {
		n += f.Size
	}
	return n
}

// ShmLeft returns those files in a directory that a user created in the given time and that are
// neither open nor mapped. It returns none if the kernel does not record when they were created.
func ShmLeft(dir string, uid uint32, since, until time.Time) ([]ShmFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []ShmFile
	for _, entry := range entries {
		var s unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, filepath.Join(dir, entry.Name()), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &s)
		if err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || s.Uid != uid || s.Mask&unix.STATX_BTIME == 0 {
			continue
		}
		if born := time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)); born.Before(since) || born.After(until) {
			continue
		}
		files = append(files, ShmFile{
			Name: entry.Name(), Size: int64(s.Blocks) * 512, //nolint:gosec // the size of a file
			device: unix.Mkdev(s.Dev_major, s.Dev_minor), inode: s.Ino,
		})
	}
	if len(files) == 0 {
		return nil, nil
	}
	return unused(dir, files)
}

// unused returns the files that are neither open nor mapped. Other users' processes, which cannot
// be inspected, do not count.
func unused(dir string, files []ShmFile) (left []ShmFile, err error) {
	used := map[[2]uint64]bool{}
	names := map[string]bool{}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		fds, _ := os.ReadDir(process + "/fd")
		for _, fd := range fds {
			var s unix.Stat_t
			if to, _ := os.Readlink(process + "/fd/" + fd.Name()); strings.HasPrefix(to, dir+"/") && unix.Stat(process+"/fd/"+fd.Name(), &s) == nil {
				used[[2]uint64{s.Dev, s.Ino}] = true
			}
		}
		maps, _ := os.ReadFile(process + "/maps")
		for line := range strings.Lines(string(maps)) {
			if _, name, ok := strings.Cut(line, " "+dir+"/"); ok {
				names[strings.TrimSpace(name)] = true
			}
		}
	}
	for _, f := range files {
		if !used[[2]uint64{f.device, f.inode}] && !names[f.Name] {
			left = append(left, f)
		}
	}
	return left, nil
}

// RemoveShm removes files from a directory, and returns those that it removed.
func RemoveShm(dir string, files []ShmFile) (gone []ShmFile, err error) {
	for _, f := range files {
		if failed := os.Remove(filepath.Join(dir, f.Name)); failed != nil {
			err = failed
			continue
		}
		gone = append(gone, f)
	}
	return gone, err
}
