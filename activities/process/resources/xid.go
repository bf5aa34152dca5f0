package resources

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// XidError is an error reported by the driver.
type XidError struct {
	Number int
	// GPU is the GPU's address on the PCI bus, such as "0000:3b:00".
	GPU string
	// PID and Name identify the process that caused the error, or are 0 and "" if the driver does
	// not know.
	PID  int
	Name string
	// Text contains the rest of the driver's message.
	Text string
	At   time.Time
}

// String returns the error as part of a sentence.
func (e XidError) String() string {
	text := fmt.Sprintf("Xid %d of GPU %s", e.Number, e.GPU)
	if e.PID != 0 {
		text += fmt.Sprintf(" (pid %d, %s)", e.PID, e.Name)
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// readXids returns the errors among the messages that the kernel still stores, oldest first. It
// fails if this process may not read the messages.
func readXids() ([]XidError, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &since); err != nil {
		return nil, err
	}
	boot := time.Now().Add(-time.Duration(since.Nano()))
	var found []XidError
	for buf := make([]byte, 8192); ; {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR): // older messages were overwritten
			continue
		case errors.Is(err, unix.EAGAIN):
			return found, nil
		case err != nil:
			return nil, err
		}
		if e, ok := parseXid(string(buf[:n]), boot); ok {
			found = append(found, e)
		}
	}
}

var (
	message = regexp.MustCompile(`^NVRM: Xid \((?:PCI:)?([^)]*)\): (\d+)(?:, *(.*))?`)
	process = regexp.MustCompile(`^pid='?(\d+|<unknown>)'?(?:, name='?([^,']*)'?)?(?:, *|$)`)
)

// parseXid reads a kernel message. Its third field is its time in microseconds since boot.
func parseXid(record string, boot time.Time) (XidError, bool) {
	head, text, _ := strings.Cut(record, ";")
	text, _, _ = strings.Cut(text, "\n")
	m := message.FindStringSubmatch(text)
	fields := strings.Split(head, ",")
	if m == nil || len(fields) < 3 {
		return XidError{}, false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	number, wrong := strconv.Atoi(m[2])
	if err != nil || wrong != nil {
		return XidError{}, false
	}
	e := XidError{Number: number, GPU: m[1], Text: m[3], At: boot.Add(time.Duration(micros) * time.Microsecond)}
	if p := process.FindStringSubmatch(e.Text); p != nil {
		e.Text = e.Text[len(p[0]):]
		if e.PID, err = strconv.Atoi(p[1]); err == nil {
			e.Name = p[2]
		}
	}
	return e, true
}
