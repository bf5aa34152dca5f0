// Package early makes a guard wait before the rest of the program is initialized.
package early

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// GuardVar is the variable that a guard finds: the process ID of its supervisor and the state
// directory, separated by a space.
const GuardVar = "CLUSTERRUN_GUARD"

// GuardName is the name of a guard in lists of processes. It does not have our own in it, since a
// guard is for the case that everything with that name is killed.
const GuardName = "task-guard"

// parentDied is the parent-death signal of a guard. By default it does nothing.
const parentDied = syscall.SIGCHLD

// bereft has the value of [GuardVar] in a guard whose supervisor has died.
var bereft string

// A guard waits here, before the rest of the program is initialized, so that it needs next to no
// memory until it is needed.
func init() {
	text, guards := os.LookupEnv(GuardVar)
	if !guards {
		return
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, parentDied)
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	number, _, _ := strings.Cut(text, " ")
	supervisor, err := strconv.Atoi(number)
	_, _, problem := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(parentDied), 0)
	if err != nil || problem != 0 {
		os.Exit(2)
	}
	rename(GuardName)
	// The signal is also sent when only the thread that has started us ends.
	for os.Getppid() == supervisor {
		<-died
	}
	signal.Stop(died)
	bereft = text
}

// rename sets the name of this process, which is otherwise the name of the link by which it was
// executed. [os.WriteFile] would open more files, for its poller.
func rename(name string) {
	fd, err := syscall.Open("/proc/self/comm", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = syscall.Write(fd, []byte(name))
	_ = syscall.Close(fd)
}

// Bereft returns the process ID and the state directory of the supervisor that this guard has
// survived. ok is false if this program is not a guard.
func Bereft() (supervisor int, dir string, ok bool) {
	number, dir, ok := strings.Cut(bereft, " ")
	supervisor, _ = strconv.Atoi(number)
	return supervisor, dir, ok
}
