package hostlist

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Host is one host of a run.
type Host struct {
	// Name is the name that pins tasks to the host.
	Name string
	// Login is the host's name for a launch agent: HOST or USER@HOST.
	Login string
	// Slots is the maximum number of tasks on the host. 0 means one per CPU.
	Slots int
	// Implied reports whether Slots was not given: -H a means a:1.
	Implied bool
	// Here reports whether the host is this machine.
	Here bool
}

// Parse parses mpirun's -H: HOST[:SLOTS],….
func Parse(text string) ([]Host, error) {
	var hosts []Host
	for item := range strings.SplitSeq(text, ",") {
		h, err := parseHost(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("-H %q: %w", text, err)
		}
		if h.Slots == 0 {
			h.Slots, h.Implied = 1, true // like mpirun; a host named twice has two
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// ParseFile parses a hostfile of Open MPI (host slots=4) or MPICH (host:4).
func ParseFile(r io.Reader) ([]Host, error) {
	var hosts []Host
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
				if h.Slots, err = parseSlots(value); err != nil {
					return nil, fmt.Errorf("line %d: %w", n, err)
				}
			case "max_slots", "max-slots":
			default:
				return nil, fmt.Errorf("line %d: cannot parse %q; write HOST slots=N or HOST:N", n, f)
			}
		}
		h.Implied = h.Slots == 0
		hosts = append(hosts, h)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("it does not name any hosts; write HOST slots=N, one per line")
	}
	return hosts, nil
}

func parseHost(text string) (Host, error) {
	login, slots, given := strings.Cut(text, ":")
	h := Host{Name: login[strings.LastIndexByte(login, '@')+1:], Login: login}
	switch {
	case h.Name == "":
		return h, fmt.Errorf("a host name is empty; write HOST or HOST:SLOTS")
	case strings.HasPrefix(login, "-"):
		return h, fmt.Errorf("%q is not a host name because it starts like a flag; write HOST or HOST:SLOTS", login)
	case !given:
		return h, nil
	}
	n, err := parseSlots(slots)
	h.Slots = n
	return h, err
}

func parseSlots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of slots; use 1 or more", text)
	}
	return n, nil
}

// Merge combines hosts that are named more than once, adding up their slots. If isHere reports
// true for a name, Merge replaces it with own, this machine's name.
func Merge(hosts []Host, own string, isHere func(name string) bool) []Host {
	var merged []Host
	at := map[string]int{}
	for _, h := range hosts {
		if isHere(h.Name) {
			h.Name, h.Here = own, true
		}
		i, seen := at[h.Name]
		if !seen {
			at[h.Name] = len(merged)
			merged = append(merged, h)
			continue
		}
		m := &merged[i]
		if m.Slots == 0 || h.Slots == 0 {
			m.Slots = max(m.Slots, h.Slots) // the number it has is counted once
		} else {
			m.Slots += h.Slots
		}
		m.Implied = m.Implied && h.Implied
	}
	return merged
}

// Elsewhere reports whether one of the hosts is another machine.
func Elsewhere(hosts []Host) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return !h.Here })
}
