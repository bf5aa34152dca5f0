package diskspace

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Space describes a file system.
type Space struct {
	// At is the directory, or its nearest existing parent.
	At string
	// Free and All are in bytes. Root may use the space that is reserved for it. All is 0 on file
	// systems that do not report their size.
	Free, All uint64
	// NoFiles reports whether no more files can be created.
	NoFiles          bool
	ReadOnly, NoExec bool
	// Type is the number of the file system's type, as in statfs(2).
	Type int64
}

// Of returns a directory's file system.
func Of(dir string) (Space, error) {
	for at := dir; ; at = filepath.Dir(at) {
		var s unix.Statfs_t
		err := unix.Statfs(at, &s)
		if errors.Is(err, unix.ENOENT) && at != filepath.Dir(at) {
			continue
		}
		if err != nil {
			return Space{At: at}, err
		}
		free, unit := s.Bavail, uint64(s.Frsize)
		if os.Geteuid() == 0 {
			free = s.Bfree
		}
		return Space{
			At: at, Free: free * unit, All: s.Blocks * unit, NoFiles: s.Files > 0 && s.Ffree == 0,
			ReadOnly: s.Flags&unix.ST_RDONLY != 0, NoExec: s.Flags&unix.ST_NOEXEC != 0, Type: int64(uint32(s.Type)),
		}, nil
	}
}
