package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// As with mpirun, the first task reads a stdin that is not a terminal.
func TestStdin(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	const program = ` -- bash -c 'echo $RANK:$(cat)'`
	for _, c := range []struct {
		name, script, want string
	}{
		{"a pipe", "printf 'a\nb\n' | %s run -n 2" + program, "0:a b 1:"},
		{"a file, of which the shell has read a part", "printf 'x\na\nb\n' > in; { read x; %s run -n 2" + program + "; } < in", "0:a b 1:"},
		{"none", "echo a | %s run -n 2 --stdin none" + program, "0: 1:"},
		{"another task", "echo a | %s run -n 2 --stdin worker-1" + program, "0: 1:a"},
		{"all, of a pipe", "printf 'a\nb\n' | %s run -n 2 --stdin all" + program, "0:a b 1:a b"},
		{"all, of the rest of a file", "printf 'x\na\n' > in; { read x; %s run -n 2 --stdin all" + program + "; } < in", "0:a 1:a"},
		{"the spec", `printf 'command: [bash, -c, "echo $RANK:$(cat)"]\ntasks: [{type: worker}]' | %s run -`, "0:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := harness.Start(t, t.TempDir(), harness.Env(l.home), "bash", "-c", fmt.Sprintf(c.script, harness.Clusterrun(t)))
			assert.Zero(t, p.ExitCode(), p.Stderr())
			got := map[string]bool{}
			for line := range strings.Lines(p.Stdout()) {
				_, text, _ := strings.Cut(line, "]:")
				got[strings.TrimSpace(text)] = true
			}
			for _, rank := range strings.SplitAfter(strings.ReplaceAll(c.want, " 1:", "\n1:"), "\n") {
				assert.Contains(t, got, strings.TrimSpace(rank))
			}
		})
	}
	for name, c := range map[string]struct{ args, want string }{
		"no such task":   {"run -n 2 --stdin boss-0 -- true", "--stdin boss-0: give none, all, or a task; the run has worker-0 to worker-1"},
		"the spec":       {"run --stdin all -", "--stdin all: the spec is read from stdin; leave --stdin out"},
		"the foreground": {"run --foreground worker-0 --stdin all -- true", "--stdin all: worker-0 has stdin, with --foreground; leave --stdin out"},
		"elsewhere":      {"run --remote --stdin all -- true", "with --remote no task can read the stdin of this command"},
		"by default":     {"run --remote -- true", "stdin has input, and with --remote no task can read the stdin of this command; put it into a file that the hosts have, or drop it with --stdin none"},
		"all of hosts":   {"run -H host.invalid:2 --stdin all -- true", "--stdin all: only one task can read it where hosts are given; leave --stdin out"},
		"no task there":  {"run -H host.invalid:2 --stdin boss-0 -- true", "--stdin boss-0: give none or a task; the run has worker-0 to worker-1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := harness.Start(t, t.TempDir(), harness.Env(l.home), "bash", "-c",
				`printf 'command: ["true"]\ntasks: [{type: worker}]' | `+harness.Clusterrun(t)+" "+c.args)
			assert.Equal(t, 2, p.ExitCode())
			assert.Contains(t, p.Stderr(), c.want)
		})
	}
}

// A signal ends a command that reads a pipe for all tasks, even if another process keeps the
// pipe open.
func TestASignalEndsTheReadingOfStdin(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "in")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	open, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	defer open.Close()
	p := harness.Start(t, dir, harness.Env(l.home), "bash", "-c", "exec "+harness.Clusterrun(t)+" run -n 1 --stdin all -- cat < in")
	harness.Eventually(t, "it reads", func() bool {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Cmd.Process.Pid))
		return err == nil && slices.ContainsFunc(files, func(file string) bool {
			target, err := os.Readlink(file)
			return err == nil && strings.Contains(target, "clusterrun-stdin-")
		})
	})
	p.Kill(syscall.SIGTERM)
	assert.Equal(t, 143, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stderr(), "got SIGTERM before the run was started")
}
