package supervisor

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// BootNanos returns the time since boot, including suspension, in nanoseconds. It is the only clock
// that all of a machine's processes share and that is never set.
func BootNanos() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("CLOCK_BOOTTIME: %v", err)) // Linux has had it since 2.6.39
	}
	return ts.Nano()
}

// bootID identifies the boot and PID namespace to which pids and start times refer. Containers on
// one machine share the kernel's boot ID, but not process numbers.
func bootID() (string, error) {
	id := proc.BootID()
	if id == "" {
		return "", errors.New("cannot read this machine's boot ID")
	}
	return id + " " + proc.Namespace("pid"), nil
}

// bootTimer calls a function when CLOCK_BOOTTIME passes a point. Unlike a runtime timer, it does
// not stop while the machine is suspended, but fires on resume. It uses one descriptor and one
// goroutine for all processes.
type bootTimer struct {
	f  *os.File
	fd int
}

func newBootTimer(fire func()) (*bootTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	t := &bootTimer{f: os.NewFile(uintptr(fd), "boottime timer"), fd: fd}
	go func() {
		var buf [8]byte
		for {
			if _, err := t.f.Read(buf[:]); err != nil {
				return // closed
			}
			fire()
		}
	}()
	return t, nil
}

// set arms the timer for an absolute time; 0 disarms it.
func (t *bootTimer) set(at int64) error {
	if at < 0 {
		at = 1
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	return unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

func (t *bootTimer) close() { _ = t.f.Close() }

func timevalDuration(tv syscall.Timeval) time.Duration {
	return time.Duration(tv.Nano())
}
