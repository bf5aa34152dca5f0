package resources

import (
	"cmp"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// fatalFor and diedWithin are how long a program may live after a hardware error and after its
	// own error.
	fatalFor, diedWithin = time.Minute, 10 * time.Second
	// late is the maximum delay between a process's exit and the driver's report of its error.
	late = time.Second
)

// XidOf returns the error that may have killed a process, or false if there is none. It prefers the
// process's own first error. If there is none, it returns the first hardware error shortly before
// the exit, and otherwise the last error of a process that exited at about the same time, such as a
// shell's child.
func XidOf(pid int, started, ended time.Time) (XidError, bool) {
	if _, err := os.Stat("/dev/nvidiactl"); err != nil {
		return XidError{}, false
	}
	all, err := readXids()
	if err != nil {
		return XidError{}, false // not every user may read them
	}
	return chooseXid(all, pid, started, ended, func(pid int) bool { return unix.Kill(pid, 0) != unix.ESRCH })
}

func chooseXid(all []XidError, pid int, started, ended time.Time, lives func(pid int) bool) (XidError, bool) {
	var own, hardware, near *XidError
	for i, e := range all {
		if e.At.Before(started.Add(-late)) || e.At.After(ended.Add(late)) {
			continue
		}
		before := ended.Sub(e.At)
		switch {
		case e.PID == pid:
			own = cmp.Or(own, &all[i])
		case spec.HardwareXid(e.Number) && before <= fatalFor:
			hardware = cmp.Or(hardware, &all[i])
		case e.PID != 0 && before <= diedWithin && !lives(e.PID):
			near = &all[i]
		}
	}
	if e := cmp.Or(own, hardware, near); e != nil {
		return *e, true
	}
	return XidError{}, false
}
