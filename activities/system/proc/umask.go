package proc

import (
	"os"
	"strconv"
	"strings"
)

// loginMask is the usual umask of a login session.
const loginMask = 0o022

// Umask returns this process's file mode creation mask. The only system call that reads the mask
// briefly changes it, which affects files that are created concurrently.
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
