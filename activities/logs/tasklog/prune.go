package tasklog

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// KeepAttempts is [Prune]'s usual number of attempts to keep, in addition to a task's first.
const KeepAttempts = 20

// Pruned returns the range of a task's attempts that were removed, given those that exist in
// ascending order ([Attempts]).
func Pruned(attempts []int) (from, to int, ok bool) {
	if len(attempts) <= KeepAttempts {
		return 0, 0, false // a gap with another cause
	}
	from, to = attempts[0]+1, attempts[1]-1
	return from, to, from <= to
}

// Prune removes the oldest attempts of the task with the given rank. It keeps the newest keep
// attempts, at least one, and the first attempt, which often shows how a problem started. Other
// tasks' attempts are kept.
func Prune(runDir string, rank, keep int) error {
	all, err := attempts(runDir)
	if err != nil {
		return err
	}
	name := strconv.Itoa(rank)
	var own []string
	for _, n := range all {
		dir := filepath.Join(attemptDir(runDir, n), name)
		if _, err := os.Lstat(dir); err == nil {
			own = append(own, dir)
		}
	}
	if len(own) == 0 {
		return nil
	}
	rest := own[1:]
	var errs []error
	for _, dir := range rest[:max(0, len(rest)-max(keep, 1))] {
		if err := os.RemoveAll(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		// This fails, as it should, if other tasks have files there.
		_ = os.Remove(filepath.Dir(dir))
	}
	return errors.Join(errs...)
}
