package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFile limits the sizes of a policy and a signers file, in bytes.
const maxFile = 1 << 20

// readTrusted reads a file if only root and our user could have written it. Like sshd, it checks
// the file and every directory above it. Unlike sshd, it accepts root's directories with the sticky
// bit, such as /tmp, in which users cannot replace each other's files.
func readTrusted(file string) ([]byte, os.FileInfo, error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, nil, err
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return nil, nil, err
		}
		if err := trusted(dir, info); err != nil {
			return nil, nil, err
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", file)
	}
	if err := trusted(real, info); err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", file, maxFile)
	}
	return b, info, err
}

// trusted returns an error if other users may have changed a file or a directory's content.
func trusted(path string, info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner cannot be determined")
	}
	if stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d; it must belong to root or to the host worker's user", path, stat.Uid)
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 && stat.Uid == 0
	if info.Mode().Perm()&0o022 != 0 && !sticky {
		return fmt.Errorf("%s is writable by others; run chmod go-w %s", path, path)
	}
	return nil
}
