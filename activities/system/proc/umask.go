package proc

import (
	"os"
	"strconv"
	"strings"
)

// loginMask is the usual mask.
const loginMask = 0o022

// Umask returns the file mode creation mask of this process. The system call for it changes it,
// too, for files that are created at the same time.
func Umask() int {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "\nUmask:\t")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseInt(line, 8, 0)
	if err != nil {
		return loginMask
	}
	return int(mask)
}
