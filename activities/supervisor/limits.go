package supervisor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LimitOf names the limit of open files that an error is of, in brackets, to be put
// behind its text. It is empty for all other errors.
//
// The soft limit is no matter: the runtime raises that of every program in Go to the
// hard one when it starts, and gives those that it executes, such as tasks, the one
// that it was started with.
func LimitOf(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Sprintf(" (a process may have %d open files here; raise that limit: ulimit -n)", mostFiles())
	case errors.Is(err, unix.ENFILE):
		return " (the machine has as many open files as it may have; raise that limit: sysctl fs.file-max)"
	}
	return ""
}

// mostFiles is the hard limit of open files.
func mostFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Max
}

// ownFiles is about how many files a supervisor has open without any port.
const ownFiles = 16

// checkFiles refuses what can never be had: each port that is leased is an open file.
func checkFiles(ports int) error {
	if most := mostFiles(); most > 0 && uint64(ports)+ownFiles > most {
		return refuse(ErrLimit, fmt.Sprintf("%d ports cannot be leased%s", ports, LimitOf(unix.EMFILE)))
	}
	return nil
}
