package stacks

import (
	"maps"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// call is a thread's system call.
type call struct {
	name string
	// file is the file that the first argument refers to, if that is a descriptor.
	file string
	// sort is "pipe", "socket", "terminal" or "file" for such a descriptor, if known.
	sort string
	// timer reports whether the call only waits for time to pass, despite its name.
	timer bool
}

func (c call) String() string {
	if c.file == "" {
		return c.name
	}
	return c.name + " on " + c.file
}

// onDescriptor lists calls that may block and whose first argument is a descriptor; others lists
// further calls that may block. All of them exist on every architecture.
var (
	onDescriptor = map[int]string{
		unix.SYS_READ: "read", unix.SYS_WRITE: "write", unix.SYS_READV: "readv", unix.SYS_WRITEV: "writev",
		unix.SYS_PREAD64: "pread64", unix.SYS_PWRITE64: "pwrite64", unix.SYS_IOCTL: "ioctl", unix.SYS_FCNTL: "fcntl",
		unix.SYS_FLOCK: "flock", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_CLOSE: "close",
		unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FALLOCATE: "fallocate", unix.SYS_FSTAT: "fstat", unix.SYS_GETDENTS64: "getdents64",
		unix.SYS_ACCEPT: "accept", unix.SYS_ACCEPT4: "accept4", unix.SYS_CONNECT: "connect",
		unix.SYS_RECVFROM: "recvfrom", unix.SYS_RECVMSG: "recvmsg", unix.SYS_RECVMMSG: "recvmmsg",
		unix.SYS_SENDTO: "sendto", unix.SYS_SENDMSG: "sendmsg", unix.SYS_SENDMMSG: "sendmmsg", unix.SYS_SENDFILE: "sendfile",
		unix.SYS_SPLICE: "splice", unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_IO_URING_ENTER: "io_uring_enter",
	}
	others = map[int]string{
		unix.SYS_FUTEX: "futex", unix.SYS_NANOSLEEP: "nanosleep", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep",
		unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid", unix.SYS_PPOLL: "ppoll", unix.SYS_PSELECT6: "pselect6",
		unix.SYS_RT_SIGTIMEDWAIT: "rt_sigtimedwait", unix.SYS_RT_SIGSUSPEND: "rt_sigsuspend", unix.SYS_RESTART_SYSCALL: "restart_syscall",
		unix.SYS_SCHED_YIELD: "sched_yield", unix.SYS_OPENAT: "openat", unix.SYS_NEWFSTATAT: "newfstatat",
		unix.SYS_EXECVE: "execve", unix.SYS_CLONE: "clone", unix.SYS_MMAP: "mmap", unix.SYS_MUNMAP: "munmap",
		unix.SYS_MPROTECT: "mprotect", unix.SYS_MADVISE: "madvise", unix.SYS_MSYNC: "msync", unix.SYS_SYNC: "sync",
		unix.SYS_SEMOP: "semop", unix.SYS_SEMTIMEDOP: "semtimedop", unix.SYS_MSGRCV: "msgrcv", unix.SYS_MSGSND: "msgsnd",
		unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2", unix.SYS_RENAMEAT: "renameat", unix.SYS_UNLINKAT: "unlinkat",
		unix.SYS_EXIT_GROUP: "exit_group", unix.SYS_IO_GETEVENTS: "io_getevents",
	}
)

func init() {
	maps.Copy(onDescriptor, onDescriptorHere)
	maps.Copy(others, othersHere)
}

// parseCall parses a thread's syscall file. The result is empty if the thread is not in a call.
// link returns what the process's descriptor refers to.
func parseCall(raw []byte, link func(fd int) string) call {
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return call{} // "running"
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < 0 {
		return call{} // in the kernel for another reason, such as a page fault
	}
	if name, ok := others[number]; ok {
		return call{name: name, timer: (name == "pselect6" || name == "select") && fields[1] == "0x0"}
	}
	name, ok := onDescriptor[number]
	if !ok {
		return call{name: "system call " + fields[0]}
	}
	fd, err := strconv.ParseUint(fields[1], 0, 64)
	if err != nil {
		return call{name: name}
	}
	target := link(int(int32(fd)))
	return call{name: name, file: strings.TrimSpace("descriptor " + strconv.Itoa(int(int32(fd))) + " " + target), sort: sortOf(target)}
}

// sortOf returns a descriptor's kind of file, from its link in /proc.
func sortOf(target string) string {
	for _, s := range [][2]string{
		{"(pipe:", "pipe"}, {"(socket:", "socket"}, {"(/dev/pts/", "terminal"}, {"(/dev/tty", "terminal"}, {"(/", "file"},
	} {
		if strings.HasPrefix(target, s[0]) {
			return s[1]
		}
	}
	return ""
}

// linkOf returns a function that resolves a process's descriptors.
func linkOf(dir string) func(int) string {
	return func(fd int) string {
		target, err := os.Readlink(dir + "/fd/" + strconv.Itoa(fd))
		if err != nil {
			return ""
		}
		return "(" + printable(target, maxLine) + ")"
	}
}
