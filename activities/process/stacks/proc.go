package stacks

import (
	"os"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// stopped reports whether the process cannot handle signals now.
func stopped(s proc.Stat) bool { return s.State == 'T' || s.State == 't' }

var stateWords = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "in uninterruptible sleep", 'T': "stopped",
	't': "stopped by a debugger", 'Z': "dead, not reaped yet", 'X': "dead", 'I': "idle",
}

func stateWord(s proc.Stat) string {
	if word, ok := stateWords[s.State]; ok {
		return word
	}
	return "in state " + string(s.State)
}

// table maps IDs to processes.
type table map[int]proc.Stat

func readTable() (table, error) {
	pids, err := proc.PIDs()
	if err != nil {
		return nil, err
	}
	t := make(table, len(pids))
	for _, pid := range pids {
		if s, err := proc.ReadStat(pid); err == nil {
			t[pid] = s
		}
	}
	return t, nil
}

// status holds the parts of a process's status file that are used.
type status struct {
	caught uint64 // the signals that it handles, with signal 1 as the lowest bit
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
