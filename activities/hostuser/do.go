package hostuser

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/undumpable"
)

// Do calls f, and has the kernel take what f itself does with files for the user's, not what
// it has other goroutines do. It has a thread of its own, which ends with it.
func (u *User) Do(f func() error) error {
	if u == nil {
		return f()
	}
	var err error
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		// It is never unlocked: nobody else may have this thread.
		runtime.LockOSThread()
		if err = u.become(); err != nil {
			err = fmt.Errorf("act as the user %s: %w", u.Name, err)
			return
		}
		err = f()
	}()
	<-done
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// become has this thread act as the user in file systems. That takes away the rights of root
// there (capabilities(7)), and leaves the thread what it needs to signal and to trace.
func (u *User) become() error {
	if strconv.IntSize < 64 {
		return errors.New("not on a machine of 32 bits") // setgroups(2) is another one there
	}
	// setfsuid(2) opens the process to the user where fs.suid_dumpable says so.
	defer func() { _ = undumpable.Set() }()
	groups := u.Groups
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0]) //nolint:gosec // the kernel reads an array
	}
	// That of package syscall is for all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return errno
	}
	for _, set := range []struct {
		id   uint32
		call func(int) (int, error)
	}{{u.GID, unix.SetfsgidRetGid}, {u.UID, unix.SetfsuidRetUid}} {
		_, _ = set.call(int(set.id)) // it returns the one before, whether it works or not
		if now, err := set.call(-1); err != nil || uint32(now) != set.id {
			return unix.EPERM
		}
	}
	return nil
}

// Access reports whether who calls it may access a file; it is for [User.Do].
func Access(path string, mode uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}
