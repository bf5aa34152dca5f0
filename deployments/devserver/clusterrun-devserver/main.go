// Command clusterrun-devserver is a Temporal server with its Web UI in one
// process, for one user on one machine. See package devserver.
package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/clusterrun/clusterrun/deployments/devserver"
)

func main() {
	// It has keys, and tasks have its user: its memory and its files are closed to them.
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); err != 0 {
		fmt.Fprintln(os.Stderr, "clusterrun-devserver: closing this process to others of its user:", err)
		os.Exit(devserver.ExitFailure)
	}
	os.Exit(devserver.Main(os.Args[1:], os.Stdout, os.Stderr))
}
