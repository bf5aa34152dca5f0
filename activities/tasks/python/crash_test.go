package python

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// PYTHONFAULTHANDLER, which tasks have in addition to the hook, prints the lines of a crash,
// which still ends the program with its signal. The hook answers all the same.
func TestACrashHasItsLines(t *testing.T) {
	p := newHooked(t)
	cmd := p.command(`
import ctypes
def crashes_here():
    ctypes.string_at(0)
crashes_here()
`)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Env = append(cmd.Env, "PYTHONFAULTHANDLER=1")
	var ended *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &ended)
	assert.Equal(t, syscall.SIGSEGV, ended.Sys().(syscall.WaitStatus).Signal())
	assert.Contains(t, errs.String(), "Fatal Python error: Segmentation fault")
	assert.Contains(t, errs.String(), "in crashes_here")

	pid := p.start(`
import faulthandler, time
assert faulthandler.is_enabled()
def waits_here():
    print("ready", flush=True)
    time.sleep(1000)
waits_here()
`, "PYTHONFAULTHANDLER=1")
	p.captureUntil(pid, func(text string) bool { return strings.Contains(text, "in waits_here") })
}
