package hostuser

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// Do calls f on a new thread, whose file accesses the kernel checks as if the user made them.
// Accesses by other goroutines that f uses are not affected. The thread exits when f returns.
func (u *User) Do(f func() error) error {
	if u == nil {
		return f()
	}
	var err error
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack()) // of this goroutine
			}
		}()
		// The thread is never unlocked, so that no other goroutine gets it.
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

// become makes this thread act as the user in file systems. It loses root's privileges there
// (capabilities(7)), but can still send signals and trace.
func (u *User) become() error {
	if strconv.IntSize < 64 {
		return errors.New("not supported on 32-bit machines") // setgroups(2) has a different number there
	}
	// setfsuid(2) makes the process accessible to the user if fs.suid_dumpable allows it.
	defer func() { _ = proc.SetUndumpable() }()
	groups := u.Groups
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0]) //nolint:gosec // the kernel reads an array
	}
	// Package syscall's function changes all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return errno
	}
	for _, set := range []struct {
		id   uint32
		call func(int) (int, error)
	}{{u.GID, unix.SetfsgidRetGid}, {u.UID, unix.SetfsuidRetUid}} {
		_, _ = set.call(int(set.id)) // returns the previous ID even if it fails
		if now, err := set.call(-1); err != nil || uint32(now) != set.id {
			return unix.EPERM
		}
	}
	return nil
}

// Access returns an error if the calling thread may not access a file. It is intended for use in
// [User.Do].
func Access(path string, mode uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}
