// Command clusterrun-devserver is a Temporal server with its Web UI in one process, for one user on
// one machine. See package devserver.
package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/clusterrun/clusterrun/deployments/devserver"
)

func main() {
	if err := nameUser(); err != nil {
		fmt.Fprintln(os.Stderr, "clusterrun-devserver: giving this process's user a name:", err)
		os.Exit(devserver.ExitFailure)
	}
	// The process has keys, and tasks run as the same user, so keep its memory and files from them.
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); err != 0 {
		fmt.Fprintln(os.Stderr, "clusterrun-devserver: closing this process to others of its user:", err)
		os.Exit(devserver.ExitFailure)
	}
	os.Exit(devserver.Main(os.Args[1:], os.Stdout, os.Stderr))
}

// nameUser executes this program again with a name for its user if the password file does not
// contain one, for example in a container with an arbitrary user ID, because Temporal requires a
// name. Go takes it from the environment, before main starts, and only without cgo, which the
// Makefile disables.
func nameUser() error {
	if _, err := user.Current(); err == nil || os.Getenv("USER") != "" && os.Getenv("HOME") != "" {
		return nil
	}
	for variable, value := range map[string]string{"USER": strconv.Itoa(os.Getuid()), "HOME": "/"} {
		if os.Getenv(variable) == "" {
			if err := os.Setenv(variable, value); err != nil {
				return err
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}
