// Package early makes a guard wait before the rest of the program is initialized.
package early

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// GuardVar is a guard's environment variable: its supervisor's process ID and state directory,
// separated by a space.
const GuardVar = "CLUSTERRUN_GUARD"

// GuardName is a guard's name in process lists. It does not contain our name, since a guard must
// survive if all processes with our name are killed.
const GuardName = "task-guard"

// parentDied is a guard's parent-death signal. By default it does nothing.
const parentDied = syscall.SIGCHLD

// bereft is [GuardVar]'s value in a guard after its supervisor has died.
var bereft string

// A guard waits here, before the rest of the program is initialized, so that it uses almost no
// memory until needed.
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
	// The signal is also sent if only the thread that started us exits.
	for os.Getppid() == supervisor {
		<-died
	}
	signal.Stop(died)
	bereft = text
}

// rename sets this process's name, by default that of the executed link. [os.WriteFile] would also
// open the poller's files.
func rename(name string) {
	fd, err := syscall.Open("/proc/self/comm", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = syscall.Write(fd, []byte(name))
	_ = syscall.Close(fd)
}

// Bereft returns the process ID and state directory of the supervisor that this guard survived. ok
// is false if this program is not a guard.
func Bereft() (supervisor int, dir string, ok bool) {
	number, dir, ok := strings.Cut(bereft, " ")
	supervisor, _ = strconv.Atoi(number)
	return supervisor, dir, ok
}
