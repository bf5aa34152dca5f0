package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/remedy"
)

// Controllers of version 2 cgroups limit memory, processors and the number of processes. A cgroup
// that contains processes cannot delegate controllers, so if the supervisor is alone in its cgroup,
// as in a systemd service with Delegate=yes, it moves into a leaf of that cgroup.

// limiting lists the controllers that limits need.
var limiting = []string{"cpu", "memory", "pids"}

// ownLeaf is the supervisor's own cgroup, next to its tasks' cgroup.
const ownLeaf = "clusterrun-supervisor"

// Delegate delegates the controllers of the instance's parent cgroup to the process cgroups. It
// returns the controllers that can now limit processes, and the reason if some are missing. If
// process self is alone in its cgroup, Delegate first moves it out of the way.
func Delegate(instance string, self int) (there []string, why error) {
	if instance == "" {
		return nil, errNoCgroupV2
	}
	own := filepath.Dir(instance)
	there = limitingIn(own)
	if len(there) == 0 {
		return nil, errNoController
	}
	handDown := []byte("+" + strings.Join(there, " +"))
	err := write(own, "cgroup.subtree_control", handDown)
	if errors.Is(err, unix.EBUSY) {
		if others := words(own, "cgroup.procs"); !slices.Equal(others, []string{strconv.Itoa(self)}) {
			return nil, errSharedCgroup
		}
		err = moveInto(filepath.Join(own, ownLeaf), self)
		if err == nil {
			if err = write(own, "cgroup.subtree_control", handDown); err != nil {
				_ = write(own, "cgroup.procs", []byte(strconv.Itoa(self)))
			}
		}
	}
	if err == nil {
		err = write(instance, "cgroup.subtree_control", handDown)
	}
	if err != nil {
		return nil, remedy.With(fmt.Errorf("its cgroup does not delegate controllers (%v)", fault.Reason(err)), "start the host worker as a service with Delegate=yes")
	}
	return onlyThese(there)
}

// Prospect returns the result that Delegate would have for a child of this process's cgroup,
// without changing anything.
func Prospect() (there []string, why error) { return prospect(Own()) }

func prospect(own string) (there []string, why error) {
	if own == "" || unix.Access(own, unix.W_OK) != nil {
		return nil, errNoCgroupV2
	}
	there = limitingIn(own)
	if len(there) == 0 {
		return nil, errNoController
	}
	handed := words(own, "cgroup.subtree_control")
	for _, name := range there {
		// The root, which lacks a type, can delegate despite its processes.
		if _, err := os.Stat(filepath.Join(own, "cgroup.type")); !slices.Contains(handed, name) && err == nil {
			return nil, errSharedCgroup
		}
	}
	return onlyThese(there)
}

// Reasons why controllers are missing.
var (
	errNoCgroupV2   = remedy.With(errors.New("the host worker may not create version 2 cgroups"), "start it as a service with Delegate=yes")
	errSharedCgroup = remedy.With(errors.New("other processes share the host worker's cgroup"), "start it as its own service with Delegate=yes")
	errNoController = remedy.With(errors.New("there are no cgroup v2 controllers "+strings.Join(limiting, ", ")), "boot with systemd.unified_cgroup_hierarchy=1, or run the host worker with Delegate=yes")
)

// limitingIn returns which of [limiting] a cgroup offers.
func limitingIn(dir string) (there []string) {
	for _, name := range words(dir, "cgroup.controllers") {
		if slices.Contains(limiting, name) {
			there = append(there, name)
		}
	}
	return there
}

func onlyThese(there []string) (_ []string, why error) {
	for _, name := range limiting {
		if !slices.Contains(there, name) {
			why = errors.New("the host worker's cgroup has only the controllers " + strings.Join(there, " and "))
		}
	}
	return there, why
}

func moveInto(leaf string, pid int) error {
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return write(leaf, "cgroup.procs", []byte(strconv.Itoa(pid)))
}

// Limit limits a cgroup before any process enters it: bytes of memory, full processors, and
// processes and threads. 0 means no limit.
func Limit(dir string, memory int64, cpus, pids int) error {
	type setting struct {
		file, value string
		optional    bool
	}
	var settings []setting
	if memory > 0 {
		settings = append(settings, setting{file: "memory.max", value: strconv.FormatInt(memory, 10)},
			// Disable swap, and kill the whole group, because a program is useless if only some of
			// its processes are killed.
			setting{"memory.swap.max", "0", true}, setting{"memory.oom.group", "1", true})
	}
	if pids > 0 {
		settings = append(settings, setting{file: "pids.max", value: strconv.Itoa(pids)})
	}
	if cpus > 0 {
		const period = 100_000 // microseconds
		settings = append(settings, setting{file: "cpu.max", value: fmt.Sprintf("%d %d", cpus*period, period)})
	}
	for _, set := range settings {
		err := write(dir, set.file, []byte(set.value))
		if set.optional && errors.Is(err, unix.ENOENT) {
			continue // the kernel lacks this setting
		}
		if err != nil {
			return fmt.Errorf("its limits cannot be enforced: writing %s to %s: %s", set.value, set.file, fault.Reason(err))
		}
	}
	return nil
}

// Read returns the content of a cgroup's file, or nil if it cannot be read.
func Read(dir, file string) []byte {
	b, _ := os.ReadFile(filepath.Join(dir, file))
	return b
}

func words(dir, file string) []string { return strings.Fields(string(Read(dir, file))) }

func write(dir, file string, value []byte) error {
	// O_CREATE is omitted, because the kernel creates these files.
	fd, err := unix.Open(filepath.Join(dir, file), unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, value)
	return err
}
