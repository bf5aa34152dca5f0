package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Memory, processors and the number of processes are limited by controllers of cgroups of
// version 2. A cgroup with processes of its own cannot delegate controllers, so the
// supervisor moves into a leaf of its cgroup if it is alone there, as in a service of systemd
// with Delegate=yes.

// limiting are the controllers that [Limits] need.
var limiting = []string{"cpu", "memory", "pids"}

// ownLeaf is the cgroup of the supervisor itself, beside that of its tasks.
const ownLeaf = "clusterrun-supervisor"

// delegate delegates the controllers of the cgroup above the instance's down to the cgroups
// of processes. self is moved out of the way if no other process is in it.
func delegate(instance string, self int) ControllersReply {
	if instance == "" {
		return ControllersReply{Why: noCgroupV2}
	}
	own := filepath.Dir(instance)
	there := limitingIn(own)
	if len(there) == 0 {
		return ControllersReply{Why: noControllers()}
	}
	handDown := []byte("+" + strings.Join(there, " +"))
	err := writeCgroup(own, "cgroup.subtree_control", handDown)
	if errors.Is(err, unix.EBUSY) {
		if others := words(own, "cgroup.procs"); !slices.Equal(others, []string{strconv.Itoa(self)}) {
			return ControllersReply{Why: sharedCgroup}
		}
		err = moveInto(filepath.Join(own, ownLeaf), self)
		if err == nil {
			if err = writeCgroup(own, "cgroup.subtree_control", handDown); err != nil {
				_ = writeCgroup(own, "cgroup.procs", []byte(strconv.Itoa(self)))
			}
		}
	}
	if err == nil {
		err = writeCgroup(instance, "cgroup.subtree_control", handDown)
	}
	if err != nil {
		return ControllersReply{Why: fmt.Sprintf("its cgroup does not delegate controllers: %v; start the host worker as a service with Delegate=yes", reasonOf(err))}
	}
	return onlyThese(there)
}

// Prospect returns what a supervisor that is started in the cgroup of this process could
// limit, as far as that is known without changing the cgroup.
func Prospect() ControllersReply { return prospect(ownCgroup()) }

func prospect(own string) ControllersReply {
	if own == "" || unix.Access(own, unix.W_OK) != nil {
		return ControllersReply{Why: noCgroupV2}
	}
	there := limitingIn(own)
	if len(there) == 0 {
		return ControllersReply{Why: noControllers()}
	}
	handed := words(own, "cgroup.subtree_control")
	for _, name := range there {
		// The root can delegate controllers although it has processes; it has no type.
		if _, err := os.Stat(filepath.Join(own, "cgroup.type")); !slices.Contains(handed, name) && err == nil {
			return ControllersReply{Why: sharedCgroup}
		}
	}
	return onlyThese(there)
}

// Reasons why controllers are missing.
const (
	noCgroupV2   = "the host worker has no cgroup of version 2 in which it may create others; start it as a service with Delegate=yes"
	sharedCgroup = "other processes share the cgroup of the host worker; start it as a service of its own with Delegate=yes"
)

func noControllers() string {
	return "the cgroup of version 2 of the host worker has none of the controllers " + strings.Join(limiting, ", ") + ": they are mounted as version 1 (boot with systemd.unified_cgroup_hierarchy=1), or not delegated (Delegate=yes)"
}

// limitingIn returns the controllers of a cgroup that limits need.
func limitingIn(dir string) (there []string) {
	for _, name := range words(dir, "cgroup.controllers") {
		if slices.Contains(limiting, name) {
			there = append(there, name)
		}
	}
	return there
}

func onlyThese(there []string) ControllersReply {
	r := ControllersReply{Controllers: there}
	for _, name := range limiting {
		if !slices.Contains(there, name) {
			r.Why = "the cgroup of the host worker has the controllers " + strings.Join(there, " and ") + " only"
		}
	}
	return r
}

func moveInto(leaf string, pid int) error {
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return writeCgroup(leaf, "cgroup.procs", []byte(strconv.Itoa(pid)))
}

// limitCgroup sets limits on a cgroup that no process is in yet.
func (s *supervisor) limitCgroup(dir string, l Limits) error {
	for _, name := range l.Controllers() {
		if dir == "" || !slices.Contains(s.controllers.Controllers, name) {
			return fmt.Errorf("its limits cannot be enforced: there is no %s controller for its cgroup: %s", name, s.controllers.Why)
		}
	}
	type setting struct {
		file, value string
		optional    bool
	}
	var settings []setting
	if l.Memory > 0 {
		settings = append(settings, setting{file: "memory.max", value: strconv.FormatInt(l.Memory, 10)},
			// Without swap, and all of it is killed together: a partly killed program is of
			// no use.
			setting{"memory.swap.max", "0", true}, setting{"memory.oom.group", "1", true})
	}
	if l.PIDs > 0 {
		settings = append(settings, setting{file: "pids.max", value: strconv.Itoa(l.PIDs)})
	}
	if l.CPUs > 0 {
		const period = 100_000 // microseconds
		settings = append(settings, setting{file: "cpu.max", value: fmt.Sprintf("%d %d", l.CPUs*period, period)})
	}
	for _, set := range settings {
		err := writeCgroup(dir, set.file, []byte(set.value))
		if set.optional && errors.Is(err, unix.ENOENT) {
			continue // the kernel has no such setting
		}
		if err != nil {
			return fmt.Errorf("its limits cannot be enforced: writing %s to %s: %s", set.value, set.file, reasonOf(err))
		}
	}
	return nil
}

// oom returns the numbers if the kernel has killed the process, or one of its descendants,
// because they had used all the memory that they may; otherwise it returns "".
func (p *process) oom() string {
	if p.cgroup == "" || p.limits.Memory == 0 {
		return ""
	}
	killed := 0
	for line := range bytes.Lines(readCgroup(p.cgroup, "memory.events")) {
		if n, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			killed, _ = strconv.Atoi(string(bytes.TrimSpace(n)))
		}
	}
	if killed == 0 {
		return ""
	}
	text := fmt.Sprintf("limits.memory is %d bytes", p.limits.Memory)
	if peak := words(p.cgroup, "memory.peak"); len(peak) == 1 {
		text += fmt.Sprintf(", and it had used %s", peak[0])
	}
	if killed == 1 {
		return text + "; the kernel killed 1 process"
	}
	return fmt.Sprintf("%s; the kernel killed %d processes", text, killed)
}

func readCgroup(dir, file string) []byte {
	b, _ := os.ReadFile(filepath.Join(dir, file))
	return b
}

func words(dir, file string) []string { return strings.Fields(string(readCgroup(dir, file))) }

func writeCgroup(dir, file string, value []byte) error {
	// O_CREATE is not used: such a file exists or not.
	fd, err := unix.Open(filepath.Join(dir, file), unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, value)
	return err
}

// forkWithin forks a program that has its limits from its first instruction on: it is stopped
// there, as for a debugger, until they are set. The thread must be locked. With limits, a
// program that changes its own user, such as sudo, cannot do so unless the supervisor is
// root.
func forkWithin(limits []Rlimit, path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	if len(limits) == 0 {
		return syscall.ForkExec(path, argv, attr)
	}
	traced, sys := *attr, *attr.Sys
	sys.Ptrace = true
	traced.Sys = &sys
	pid, err := syscall.ForkExec(path, argv, &traced)
	if err != nil {
		return 0, err
	}
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	for _, l := range limits {
		if err := unix.Prlimit(pid, l.Resource, &unix.Rlimit{Cur: l.Value, Max: l.Value}, nil); err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			_ = unix.PtraceDetach(pid)
			for _, err := syscall.Wait4(pid, nil, 0, nil); err == syscall.EINTR; _, err = syscall.Wait4(pid, nil, 0, nil) {
			}
			return 0, &startError{fmt.Sprintf("setting its limits: %s", reasonOf(err)), exitcode.NotExecutable}
		}
	}
	return pid, unix.PtraceDetach(pid)
}
