package tasklog

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// KeepAttempts is how many attempts of a task [Prune] usually keeps.
const KeepAttempts = 20

// Prune removes the oldest attempts of the task with that rank, so that keep of
// them are left, and at least the newest. Other tasks' attempts stay.
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
	var errs []error
	for _, dir := range own[:max(0, len(own)-max(keep, 1))] {
		if err := os.RemoveAll(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		removeEmpty(filepath.Dir(dir))
	}
	return errors.Join(errs...)
}

// removeEmpty removes the directory of an attempt that no task has files of any
// more, and with it what was collected of them.
func removeEmpty(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasPrefix(e.Name(), filteredPrefix) {
			return
		}
	}
	for _, e := range entries {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
	// Fails where a task has begun this attempt meanwhile, as it should.
	_ = os.Remove(dir)
}
