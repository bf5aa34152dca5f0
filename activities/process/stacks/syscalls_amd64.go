package stacks

import "golang.org/x/sys/unix"

// Calls that do not exist on newer architectures.
var (
	onDescriptorHere = map[int]string{
		unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_GETDENTS: "getdents",
	}
	othersHere = map[int]string{
		unix.SYS_POLL: "poll", unix.SYS_SELECT: "select", unix.SYS_PAUSE: "pause", unix.SYS_OPEN: "open",
		unix.SYS_STAT: "stat", unix.SYS_LSTAT: "lstat", unix.SYS_FORK: "fork", unix.SYS_VFORK: "vfork",
		unix.SYS_RENAME: "rename", unix.SYS_UNLINK: "unlink", unix.SYS_MKDIR: "mkdir", unix.SYS_RMDIR: "rmdir",
	}
)
