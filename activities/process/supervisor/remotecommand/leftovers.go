package remotecommand

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// living returns the processes of a list that live and belong to a command, with their start
// ticks.
func living(pids []int, belongs func(pid int, stat proc.Stat) bool) map[int]uint64 {
	found := map[int]uint64{}
	for _, pid := range pids {
		if stat, err := proc.ReadStat(pid); err == nil && !stat.Dead() && belongs(pid, stat) {
			found[pid] = stat.Ticks
		}
	}
	return found
}

// hasVariable reports whether a process has the ID of a command in its environment.
func hasVariable(pid int, id string) bool {
	return proc.Variable(pid, Variable) == id
}

// mark gives a command an ID, and notes it in a file. It returns the name of the file.
func (e *Executor) mark(p *process) (name string, err error) {
	random := make([]byte, 8)
	_, _ = rand.Read(random)
	name = hex.EncodeToString(random)
	p.id, p.marker = e.instance+"/"+name, filepath.Join(e.dir, name)
	if err = os.MkdirAll(e.dir, 0o700); err == nil {
		err = os.WriteFile(p.marker, nil, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("noting the command in the state directory: %s", fault.Reason(err))
	}
	return name, nil
}

// Sweep ends what the commands of an earlier side with the state directory have left.
func (e *Executor) Sweep() {
	entries, err := os.ReadDir(e.dir)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
		return
	}
	for deadline := time.Now().Add(killTakes); ; time.Sleep(10 * time.Millisecond) {
		pids, _ := proc.PIDs()
		rest := living(pids, func(pid int, _ proc.Stat) bool {
			return slices.ContainsFunc(entries, func(of fs.DirEntry) bool { return hasVariable(pid, e.instance+"/"+of.Name()) })
		})
		if len(rest) == 0 || time.Now().After(deadline) {
			break
		}
		for pid, ticks := range rest {
			proc.Signal(pid, ticks, unix.SIGKILL)
		}
	}
	for _, entry := range entries {
		_ = os.Remove(filepath.Join(e.dir, entry.Name()))
	}
}
