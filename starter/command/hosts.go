package command

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// hostSlots is one host of mpirun's -H or of a hostfile.
type hostSlots struct {
	name  string
	slots int // 0: not given
}

// parseHosts reads mpirun's -H: HOST[:SLOTS],….
func parseHosts(text string) ([]hostSlots, error) {
	var hosts []hostSlots
	for item := range strings.SplitSeq(text, ",") {
		h, err := parseHost(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("-H %q: %w", text, err)
		}
		if h.slots == 0 {
			h.slots = 1 // as mpirun has it; a host named twice has two
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// parseHostfile reads a hostfile of Open MPI (host slots=4) or MPICH (host:4).
func parseHostfile(r io.Reader) ([]hostSlots, error) {
	var hosts []hostSlots
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		h, err := parseHost(fields[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			switch key {
			case "slots":
				if h.slots, err = parseSlots(value); err != nil {
					return nil, fmt.Errorf("line %d: %w", n, err)
				}
			case "max_slots", "max-slots":
			default:
				return nil, fmt.Errorf("line %d: %q is not understood; write HOST slots=N or HOST:N", n, f)
			}
		}
		if h.slots == 0 {
			h.slots = runtime.NumCPU() // as Open MPI has it
		}
		hosts = append(hosts, h)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("it names no host; write HOST slots=N, one a line")
	}
	return hosts, nil
}

func parseHost(text string) (hostSlots, error) {
	name, slots, given := strings.Cut(text, ":")
	h := hostSlots{name: name}
	if name == "" {
		return h, fmt.Errorf("a host's name is empty; write HOST or HOST:SLOTS")
	}
	if !given {
		return h, nil
	}
	n, err := parseSlots(slots)
	h.slots = n
	return h, err
}

func parseSlots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no number of slots; give 1 or more", text)
	}
	return n, nil
}

// slotsHere adds up the slots of this machine and refuses other hosts.
func slotsHere(flag string, hosts []hostSlots) (int, error) {
	total := 0
	for _, h := range hosts {
		if !isThisMachine(h.name) {
			return 0, fmt.Errorf("%s: %s is not this machine; several hosts come later, until then name tasks of other hosts with --task TYPE=HOST:PORT, start a `clusterrun worker` there, and use `clusterrun submit`", flag, h.name)
		}
		total += h.slots
	}
	return total, nil
}

// isThisMachine reports whether a host's name means the machine we are on.
func isThisMachine(name string) bool {
	if spec.IsLoopback(name) {
		return true
	}
	if own, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(own, ".")
		if name == own || name == short {
			return true
		}
	}
	ip := net.ParseIP(name)
	if ip == nil {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
