package output

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
)

// Files configures where, and as which user, a process's files are created.
type Files struct {
	User *hostuser.User // nil means our own
	// Dir is created, with its parents, within Root, and links must not lead out of Root. Root may
	// be empty.
	Dir, Root string
	// Mode is the created directories' mode. By default only the user may read them.
	Mode fs.FileMode
}

// Dir is the directory for a process's files.
type Dir struct {
	root *os.Root // links must not lead out of it; nil if unknown
	path string   // root's path
	mode fs.FileMode
}

// Make creates the directory. The caller must already run as the user.
func (f Files) Make() (Dir, error) {
	l := Dir{mode: cmp.Or(f.Mode, 0o700)}
	if f.Dir == "" {
		return l, nil
	}
	err := error(nil)
	if f.Root == "" {
		err = os.MkdirAll(f.Dir, l.mode)
	} else if err = os.MkdirAll(f.Root, l.mode); err == nil {
		l.path = f.Root
		if l.root, err = os.OpenRoot(f.Root); err == nil {
			err = l.root.MkdirAll(strings.TrimPrefix(f.Dir, f.Root+"/"), l.mode)
		}
	}
	if err != nil {
		l.Close()
		return l, fault.Failed("making the log directory "+f.Dir, err)
	}
	return l, nil
}

// Close closes the directory.
func (l Dir) Close() {
	if l.root != nil {
		_ = l.root.Close()
	}
}

// Open opens a file, creating it if flags say so. The file is closed on exec.
func (l Dir) Open(path string, flags int) (int, error) {
	mode := l.mode.Perm() & 0o666
	if name, below := strings.CutPrefix(path, l.path+"/"); below && l.root != nil {
		f, err := l.root.OpenFile(filepath.Clean(name), flags, mode)
		if err != nil {
			return -1, err
		}
		defer f.Close()
		return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	}
	return unix.Open(path, flags|unix.O_CLOEXEC, uint32(mode))
}
