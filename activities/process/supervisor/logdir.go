package supervisor

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// checkDir returns an error for an unusable working directory: the kernel's errors do not
// tell whether they mean the program or the directory.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	wrong := func(why string) error {
		return &startError{fmt.Sprintf("working directory %s: %s", dir, why), exitcode.NotExecutable}
	}
	if info, err := os.Stat(dir); err != nil {
		return wrong(reasonOf(err))
	} else if !info.IsDir() {
		return wrong("not a directory")
	}
	if err := hostuser.Access(dir, unix.X_OK); err != nil {
		return wrong(reasonOf(err))
	}
	return nil
}

// logDir is the directory in which the files of a process are created.
type logDir struct {
	root *os.Root // links must not leave it; nil if it is not known
	path string   // of root
	mode fs.FileMode
}

// makeLogDir creates the log directory of a process.
func makeLogDir(c Command) (logDir, error) {
	l := logDir{mode: cmp.Or(c.LogMode, 0o700)}
	if c.LogDir == "" {
		return l, nil
	}
	err := error(nil)
	if c.LogRoot == "" {
		err = os.MkdirAll(c.LogDir, l.mode)
	} else if err = os.MkdirAll(c.LogRoot, l.mode); err == nil {
		l.path = c.LogRoot
		if l.root, err = os.OpenRoot(c.LogRoot); err == nil {
			err = l.root.MkdirAll(strings.TrimPrefix(c.LogDir, c.LogRoot+"/"), l.mode)
		}
	}
	if err != nil {
		l.close()
		return l, &startError{fmt.Sprintf("making the log directory %s: %s", c.LogDir, reasonOf(err)), exitcode.NotExecutable}
	}
	return l, nil
}

func (l logDir) close() {
	if l.root != nil {
		_ = l.root.Close()
	}
}

// open opens a file, creating it if flags say so. The file is closed on exec.
func (l logDir) open(path string, flags int) (int, error) {
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
