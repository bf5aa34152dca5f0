package stacks

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// stat is the used part of the stat file of a process or thread.
type stat struct {
	name    string
	state   byte
	ppid    int
	session int
	threads int
	cpu     time.Duration
	// ticks is the start time in clock ticks since boot: together with the ID it identifies a
	// process uniquely.
	ticks uint64
}

// tick is the unit of times in /proc (USER_HZ).
const tick = 10 * time.Millisecond

// dead reports whether nothing of the process runs any more. A process whose main thread has
// ended before the others has the state of a zombie but is not dead.
func (s stat) dead() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

// stopped reports whether the process cannot handle a signal at the moment.
func (s stat) stopped() bool { return s.state == 'T' || s.state == 't' }

var stateWords = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "in uninterruptible sleep", 'T': "stopped",
	't': "stopped by a debugger", 'Z': "dead, not reaped yet", 'X': "dead", 'I': "idle",
}

func (s stat) word() string {
	if word, ok := stateWords[s.state]; ok {
		return word
	}
	return "in state " + string(s.state)
}

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

func readStat(dir string) (stat, error) {
	raw, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(raw)
}

var errStat = errors.New("malformed stat file")

func parseStat(raw []byte) (stat, error) {
	// The name is in parentheses and may itself have spaces and parentheses.
	start, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if start < 0 || end < start {
		return stat{}, errStat
	}
	fields := strings.Fields(string(raw[end+1:]))
	if len(fields) < 20 || len(fields[0]) != 1 {
		return stat{}, errStat
	}
	var failed error
	number := func(i int) uint64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		failed = errors.Join(failed, err)
		return uint64(n)
	}
	s := stat{
		name: string(raw[start+1 : end]), state: fields[0][0],
		ppid: int(number(1)), session: int(number(3)), threads: int(number(17)),
		cpu: time.Duration(number(11)+number(12)) * tick, ticks: number(19),
	}
	if failed != nil {
		return stat{}, errStat
	}
	return s, nil
}

// table has all processes, by ID.
type table map[int]stat

func readTable() (table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	t := make(table, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(procDir(pid)); err == nil {
			t[pid] = s
		}
	}
	return t, nil
}

// status is the used part of the status file of a process.
type status struct {
	caught uint64 // the signals it handles; the first is the lowest bit
	// ids are its process IDs, from our PID namespace to its own.
	ids []int
}

func (s status) catches(signal int) bool { return s.caught&(1<<(signal-1)) != 0 }

func readStatus(dir string) (status, error) {
	raw, err := os.ReadFile(dir + "/status")
	if err != nil {
		return status{}, err
	}
	return parseStatus(raw), nil
}

func parseStatus(raw []byte) status {
	var s status
	for line := range strings.Lines(string(raw)) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "SigCgt":
			s.caught, _ = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		case "NSpid":
			for field := range strings.FieldsSeq(value) {
				if pid, err := strconv.Atoi(field); err == nil {
					s.ids = append(s.ids, pid)
				}
			}
		}
	}
	return s
}
