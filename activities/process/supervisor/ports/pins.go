package ports

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// pin is a port that a task wants by number. Two tasks of a run may want the same port of one
// machine, under two names of the machine and even on two host workers. Waiting would never
// help, and only the supervisors can find out: the name of the socket contains the task, for
// other supervisors to read.
type pin struct {
	task       string
	generation int
	fd         int // the socket with the name
}

// pin records the task of a port. Without the socket other supervisors only see that the
// port is taken.
func (p *Ports) pin(run runkey.Run, generation, port int, task string) {
	if before, ok := p.pins[port]; task == "" || ok && before.generation == generation {
		return
	}
	p.unpin([]int{port})
	if p.pins == nil {
		p.pins = make(map[int]pin)
	}
	fd, err := bindAbstract(pinPrefix(run, generation, port) + pinName(task))
	if err != nil {
		fd = -1
	}
	p.pins[port] = pin{task: task, generation: generation, fd: fd}
}

// unpin removes the tasks of the given ports, or of all if ports is nil.
func (p *Ports) unpin(ports []int) {
	for port, pin := range p.pins {
		if ports == nil || slices.Contains(ports, port) {
			if pin.fd >= 0 {
				_ = unix.Close(pin.fd)
			}
			delete(p.pins, port)
		}
	}
}

// sharedWith returns an error if another lease of the same generation has the port.
func (p *Ports) sharedWith(key leaseKey, port int, task string) error {
	for other, l := range p.leased {
		if other.generation != key.generation || other.group == key.group {
			continue
		}
		if slices.Contains(l.Fixed, port) && p.pins[port].task != task {
			return errShared(port, task, p.pins[port].task)
		}
		if slices.Contains(l.Any, port) {
			return fault.Refuse(fault.ErrPortTaken, fmt.Sprintf("port %d is taken by another task of the run", port))
		}
	}
	return nil
}

func errShared(port int, task, other string) error {
	other = cmp.Or(other, "another task")
	return fault.Refuse(fault.ErrPortShared, fmt.Sprintf("%s and %s are both pinned to port %d of this machine", other, task, port))
}

// pinnedBy returns the other task of the run that holds the port, by the name of its socket;
// empty if the port is not held by the run.
func pinnedBy(run runkey.Run, generation, port int, task string) string {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return ""
	}
	_, rest, found := strings.Cut(string(sockets), " @"+pinPrefix(run, generation, port))
	if !found {
		return ""
	}
	if other, _, _ := strings.Cut(rest, "\n"); other != pinName(task) {
		return other
	}
	return ""
}

// pinPrefix begins the names of the sockets of one port of a run.
func pinPrefix(run runkey.Run, generation, port int) string {
	sum := sha256.Sum256([]byte(run.Namespace + "\x00" + run.WorkflowID + "\x00" + run.RunID))
	return portPrefix + strconv.Itoa(port) + "/" + hex.EncodeToString(sum[:8]) + "/" + strconv.Itoa(generation) + "/"
}

// pinName cuts a task's name so that the socket's name fits in the kernel's 107 bytes.
func pinName(task string) string { return task[:min(len(task), 40)] }
