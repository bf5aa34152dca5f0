package drill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// page contains what one process wrote to its run's ledger.
type page struct {
	task       string
	pid        int
	generation int
	number     int // within its task
	host       string
	socket     string
	port       string // in its address
	cgroup     string
	started    int64
	ended      int64 // or 0 if it did not record its exit
	code       int
	asked      bool     // it got SIGTERM
	doubles    []string // tasks and generations that must not be alive
	wrong      []string
	broken     string // why its barrier broke
	arrivals   []int64
	passes     map[int]int64 // round → when
	lines      int           // writes that returned
}

func pageName(task string, pid int) string { return fmt.Sprintf("page.%s.%d", task, pid) }

// readLedger reads a run's pages, by task and start.
func readLedger(dir string) ([]page, error) {
	names, err := filepath.Glob(filepath.Join(dir, "page.*"))
	if err != nil {
		return nil, err
	}
	var pages []page
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fields := strings.Split(filepath.Base(name), ".")
		p := page{task: fields[1], passes: map[int]int64{}}
		if p.pid, err = strconv.Atoi(fields[2]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for line := range strings.Lines(string(b)) {
			if err := p.read(strings.Fields(line)); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", name, line, err)
			}
		}
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b page) int {
		if a.task != b.task {
			return strings.Compare(a.task, b.task)
		}
		return int(a.started - b.started)
	})
	return pages, nil
}

func (p *page) read(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("too short")
	}
	at, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return err
	}
	number := func(i int) int {
		if err != nil || i >= len(words) {
			return 0
		}
		var n int
		n, err = strconv.Atoi(words[i])
		return n
	}
	switch words[1] {
	case "start":
		p.started, p.generation, p.number = at, number(2), number(3)
		if len(words) > 5 {
			p.host, p.socket = words[4], words[5]
		}
		if len(words) > 6 {
			p.port = words[6]
		}
	case "cgroup":
		p.cgroup = strings.Join(words[2:], " ")
	case "end":
		p.ended, p.code = at, number(2)
	case "asked":
		p.asked = true
	case "double":
		p.doubles = append(p.doubles, words[2])
	case "wrong":
		p.wrong = append(p.wrong, strings.Join(words[2:], " "))
	case "broken": // a broken barrier means that a member has exited
		p.broken = strings.Join(words[2:], " ")
	case "arrive":
		p.arrivals = append(p.arrivals, at)
	case "pass":
		p.passes[number(2)] = at
	case "lines":
		p.lines = number(2)
	default:
		return fmt.Errorf("unknown word %q", words[1])
	}
	return err
}
