package supervisor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LimitOf returns the limit of open files that caused err, in brackets, to be appended to
// its text. It is empty for other errors.
//
// The soft limit does not matter: the runtime of Go raises it to the hard limit at start,
// and restores it for the programs that it executes, such as tasks.
func LimitOf(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Sprintf(" (a process may have %d open files here; raise that limit: ulimit -n)", mostFiles())
	case errors.Is(err, unix.ENFILE):
		return " (the machine has reached its limit of open files; raise that limit: sysctl fs.file-max)"
	}
	return ""
}

// mostFiles returns the hard limit of open files.
func mostFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Max
}

// ownFiles is roughly how many files a supervisor has open without any port.
const ownFiles = 16

// checkFiles refuses more ports than can ever be leased: each leased port is an open file.
func checkFiles(ports int) error {
	if most := mostFiles(); most > 0 && uint64(ports)+ownFiles > most {
		return refuse(ErrLimit, fmt.Sprintf("%d ports cannot be leased%s", ports, LimitOf(unix.EMFILE)))
	}
	return nil
}
