package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// executingFor limits the wait for a process that is executing another program, which may take long
// on a busy machine.
const executingFor = 2 * time.Second

// Environ returns the environment with which a process was started, unless the process has
// overwritten it. While a process is executing another program, the kernel briefly shows an empty
// or incomplete environment. Environ waits until this has passed.
func Environ(pid int) ([]string, error) {
	for deadline := time.Now().Add(executingFor); ; time.Sleep(time.Millisecond) {
		raw, err := os.ReadFile(Dir(pid) + "/environ")
		size, known := environSize(pid)
		if err != nil || !known || size == len(raw) || time.Now().After(deadline) {
			return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00"), err
		}
	}
}

// Variable returns the value of a variable in a process's environment, or "".
func Variable(pid int, name string) string {
	environ, _ := Environ(pid)
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// environSize returns the size of a process's environment, which is known only while the process is
// alive. While it is executing another program, the size is -1 or that of the next program.
func environSize(pid int) (size int, known bool) {
	raw, err := os.ReadFile(Dir(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The indices in proc_pid_stat(5), without the first two fields, of state, flags, startcode,
	// env_start and env_end. The kernel sets startcode once the environment is complete.
	const state, flags, code, start, end = 0, 6, 23, 47, 48
	const kernelThread = 0x200000
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) <= end || strings.ContainsAny(fields[state], "ZX") {
		return 0, false
	}
	kind, err := strconv.ParseUint(fields[flags], 10, 64)
	if err != nil || kind&kernelThread != 0 {
		return 0, false
	}
	from, err := strconv.ParseUint(fields[start], 10, 64)
	to, err2 := strconv.ParseUint(fields[end], 10, 64)
	switch {
	case err != nil || err2 != nil:
		return 0, false
	case from == 0 || to < from || fields[code] == "0":
		return -1, true
	}
	return int(to - from), true //nolint:gosec // at most the size of a stack
}
