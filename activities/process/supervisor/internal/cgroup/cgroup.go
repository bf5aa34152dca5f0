// Package cgroup manages version 2 cgroups for a supervisor's processes.
package cgroup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// A version 2 cgroup contains a process and all its descendants even if they change their session,
// parents and environment. Cgroups are used if the supervisor may create them even if no
// controllers are available.

// Own returns the directory of this process's cgroup, or empty if it does not exist.
func Own() string {
	self, mounts := ownFiles()
	return find(self, mounts, "")
}

// Place returns the path of this process's cgroup relative to the root ("" for the root itself),
// and whether the cgroup belongs to a task of any supervisor.
func Place() (path string, ofTask bool) {
	self, _ := ownFiles()
	return placeIn(self)
}

func placeIn(self []byte) (path string, ofTask bool) {
	for line := range strings.Lines(string(self)) {
		if of, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			path = of
		}
	}
	return path, taskPath().MatchString("/" + path)
}

var taskPath = lazyregexp.New(`/clusterrun-[a-z0-9]{8}/`) // see Make

// ownFiles returns the cgroups and mounts that this process had initially.
var ownFiles = sync.OnceValues(func() (self, mounts []byte) {
	self, _ = os.ReadFile("/proc/self/cgroup")
	mounts, _ = os.ReadFile("/proc/self/mountinfo")
	return self, mounts
})

// find returns the cgroup of a version 1 controller, or of version 2 if controller is "".
func find(self, mounts []byte, controller string) string {
	var path string
	for line := range bytes.Lines(self) {
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			path = fields[2]
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") {
		return "" // no cgroup, or one hidden from this container
	}
	// Hybrid hosts mount version 2 under the version 1 hierarchies, so search by type rather than
	// path.
	lines := bufio.NewScanner(bytes.NewReader(mounts))
	for lines.Scan() {
		head, tail, ok := strings.Cut(lines.Text(), " - ")
		if !ok || !mounted(strings.Fields(tail), controller) {
			continue
		}
		fields := strings.Fields(head)
		if len(fields) < 5 {
			continue
		}
		root, point := unescapeMount(fields[3]), unescapeMount(fields[4])
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue // mounted from elsewhere in the tree
		}
		return filepath.Join(point, rel)
	}
	return ""
}

// mounted reports whether a mount with the type, source and options in tail holds a controller's
// cgroups.
func mounted(tail []string, controller string) bool {
	if controller == "" {
		return tail[0] == "cgroup2"
	}
	return len(tail) == 3 && tail[0] == "cgroup" && slices.Contains(strings.Split(tail[2], ","), controller)
}

// unescapeMount decodes mountinfo's octal escapes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Make creates the parent of the tasks' cgroups, and returns its path, or "" on failure.
func Make(instance string) string {
	parent := Own()
	if parent == "" {
		return ""
	}
	if filepath.Base(parent) == ownLeaf {
		parent = filepath.Dir(parent) // this program has re-executed itself
	}
	dir := filepath.Join(parent, "clusterrun-"+instance)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return ""
	}
	return dir
}

var plainName = lazyregexp.New(`^[A-Za-z0-9._-]+$`)

// Name returns a file name unique to a process.
func Name(hash string, key runkey.Task, number int) string {
	task := key.Task
	if len(task) > 64 || !plainName().MatchString(task) {
		sum := sha256.Sum256([]byte(task))
		task = "+" + hex.EncodeToString(sum[:16])
	}
	return hash + "-" + strconv.Itoa(key.Generation) + "-" + task + "-" + strconv.Itoa(number)
}

// Kill sends SIGKILL to everything in a cgroup and its descendants.
func Kill(dir string) {
	fd, err := unix.Open(dir+"/cgroup.kill", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte("1"))
		_ = unix.Close(fd)
		if err == nil {
			return
		}
	}
	if errors.Is(err, unix.ENOENT) {
		if _, serr := os.Stat(dir); serr != nil {
			return // no such cgroup
		}
	}
	// Linux before 5.14 provides only the list of processes.
	for _, pid := range PIDs(dir) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// PIDs returns the processes in a cgroup and its descendants.
func PIDs(dir string) (pids []int) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // a cgroup that is gone has no processes
		}
		for _, field := range words(path, "cgroup.procs") {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// Populated reports whether a cgroup or its descendants contain a living process.
func Populated(dir string) bool {
	raw, err := os.ReadFile(dir + "/cgroup.events")
	return err == nil && bytes.Contains(raw, []byte("populated 1"))
}

// Remove removes a cgroup and all cgroups that a task created in it.
func Remove(dir string) {
	pause := time.Millisecond
	for range 6 {
		if err := unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return
		}
		var below []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != dir {
				below = append(below, path)
			}
			return nil
		})
		for i := len(below) - 1; i >= 0; i-- {
			_ = unix.Rmdir(below[i])
		}
		if err := unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return
		}
		// The last process becomes a zombie shortly before it leaves the cgroup.
		time.Sleep(pause)
		pause *= 2
	}
}

// Of returns the name of the instance's child cgroup that contains the process, or "".
func Of(pid int, instance string) string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return ""
	}
	_, rest, ok := strings.Cut(string(raw), "/clusterrun-"+instance+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "\n")
	name, _, _ = strings.Cut(name, "/")
	return name
}

// Record writes the path of the instance's cgroup, because the next supervisor may start in another
// cgroup. It does not sync the file, since no cgroup outlives the boot.
func Record(path, boot, cgroup string) error {
	return atomicfile.Write(path, []byte(boot+"\n"+cgroup+"\n"), 0o600)
}

// Recorded returns the cgroup recorded in this boot, or "".
func Recorded(path, boot string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	thenBoot, rest, _ := strings.Cut(string(raw), "\n")
	cgroup := strings.TrimSpace(rest)
	if thenBoot != boot || !strings.HasPrefix(filepath.Base(cgroup), "clusterrun-") {
		return ""
	}
	if _, err := os.Stat(cgroup); err != nil {
		return ""
	}
	return cgroup
}
