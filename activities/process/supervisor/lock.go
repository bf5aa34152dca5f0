package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
)

const lockFile = "lock"

// The roles that a holder writes into the lock file after its pid.
const (
	roleSupervisor = "supervisor"
	roleSweep      = "sweep"
)

// tryLock takes a state directory's lock without waiting. Only a supervisor creates it, because a
// late sweep may run while the directory is removed.
func tryLock(dir, role string) (*os.File, error) {
	try := filelock.Try
	if role == roleSweep {
		try = filelock.TryExisting
	}
	f, err := try(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	// The text informs users and distinguishes roles. If the disk is full, the lock must still be
	// held.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(holderLine(role)), 0)
	return f, nil
}

func holderLine(role string) string { return strconv.Itoa(os.Getpid()) + " " + role + "\n" }

// holder returns the lock's holder according to the file.
func holder(dir string) (pid int, role string) {
	raw, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		return 0, ""
	}
	fields := strings.Fields(string(raw))
	if len(fields) > 0 {
		pid, _ = strconv.Atoi(fields[0])
	}
	if len(fields) > 1 {
		role = fields[1]
	}
	return pid, role
}

// How long an opener waits for a lock. It waits briefly in case another process is only checking
// the lock, and longer if a dead supervisor's side is cleaning up.
const (
	lockPatience  = 250 * time.Millisecond
	sweepPatience = 15 * time.Second
)

func waitLock(dir string) (*os.File, error) {
	begun := time.Now()
	for {
		f, err := tryLock(dir, roleSupervisor)
		if !errors.Is(err, filelock.ErrLocked) {
			return f, err
		}
		pid, role := holder(dir)
		patience := lockPatience
		if role == roleSweep {
			patience = sweepPatience
		}
		if time.Since(begun) > patience {
			return nil, inUse(dir, pid, role)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// inUse returns the error for a state directory in use. It names the process, and describes what
// stopping it would do.
func inUse(dir string, pid int, role string) error {
	switch {
	case pid <= 0:
		return fmt.Errorf("the state directory %s is in use by another process; choose another state directory", dir)
	case role == roleSweep:
		return fmt.Errorf("the state directory %s is in use by process %d, which is cleaning up after a dead host worker; try again in a moment", dir, pid)
	}
	return fmt.Errorf("the state directory %s is in use by the host worker with pid %d; choose another state directory, or kill that host worker with all its tasks: kill %d", dir, pid, pid)
}

// LockFree reports whether no supervisor uses a state directory, which need not exist.
func LockFree(dir string) bool {
	// Openers wait for longer than this check holds the lock.
	held, err := filelock.IsHeld(filepath.Join(dir, lockFile))
	return err == nil && !held
}

// Holder returns the process ID of the supervisor that uses a state directory, or 0.
func Holder(dir string) int {
	if LockFree(dir) {
		return 0
	}
	pid, role := holder(dir)
	if role != roleSupervisor {
		return 0 // a dead supervisor's side is cleaning up
	}
	return pid
}
