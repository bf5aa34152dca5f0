package devserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// errLocked names a lock's holder.
type errLocked struct {
	path string
	pid  string // "" until the holder has written it
}

func (e errLocked) Error() string {
	if e.pid == "" {
		return fmt.Sprintf("%s is held by another process", e.path)
	}
	return fmt.Sprintf("%s is held by pid %s", e.path, e.pid)
}

// lockFile takes an exclusive lock and writes our pid to the file. The kernel releases the lock
// when the process exits, however it exits. The file is kept, because if it were removed, two
// processes could hold locks on different files of the same name.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		pid, _ := os.ReadFile(path)
		return nil, errLocked{path: path, pid: string(bytes.TrimSpace(pid))}
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return f, nil
}
