package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// atTerminal is clusterrun run in a terminal.
func (l *local) atTerminal(args ...string) *harness.Terminal {
	l.t.Helper()
	return harness.StartInTerminal(l.t, l.home, harness.Env(l.home), append([]string{harness.Clusterrun(l.t)}, args...)...)
}

// write puts a program into the run's directory.
func (l *local) write(name, text string) {
	l.t.Helper()
	require.NoError(l.t, os.WriteFile(filepath.Join(l.home, name), []byte(text), 0o644))
}

func TestForegroundWithoutATerminal(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	l.write("data", "a line of data\n")
	script := fmt.Sprintf(`echo "$DATA" | %s run --foreground worker-0 -n 2 -- bash -c '
if [ $RANK = 0 ]; then cat; test -t 0 || echo no terminal; ls /proc/self/fd | wc -l; echo to stderr >&2; else cat; ls /proc/self/fd | wc -l; fi' 2>errors`, harness.Clusterrun(t))
	p := harness.Start(t, l.home, harness.Env(l.home, "DATA=some data"), "bash", "-c", script)
	require.Zero(t, p.ExitCode(), p.Stdout())
	const others = "[worker-1]:    4\n"
	assert.Contains(t, p.Stdout(), others, "the other task has its stdin from /dev/null")
	// The other task's line may be anywhere between the foreground task's.
	assert.Equal(t, "some data\nno terminal\n4\n", strings.Replace(p.Stdout(), others, "", 1), "stdin is the task's, and no descriptor beside the three is")
	errors := must.Get(os.ReadFile(filepath.Join(l.home, "errors")))(t)
	assert.Contains(t, "\n"+string(errors), "\nto stderr\n")
	logs := must.Get(filepath.Glob(filepath.Join(l.home, ".local/state/clusterrun/logs/*/*/attempt_0/*/stdout.log")))(t)
	require.Len(t, logs, 2, "%v", logs)
	kept := must.Get(os.ReadFile(logs[0]))(t)
	assert.Equal(t, "some data\nno terminal\n4\n", string(kept), "the end of what goes to our stdout is kept")

	p = harness.Start(t, l.home, harness.Env(l.home), "bash", "-c", `echo a | `+harness.Clusterrun(t)+` run -n 2 --stdin worker-1 -- bash -c 'echo $RANK:$(cat)'`)
	assert.Zero(t, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stdout(), "1:a\n", "a named task gets the stdin")

	code, stdout, stderr := l.run("run", "--json", "--foreground", "worker-0", "-n", "1", "--", "bash", "-c", "echo noise; exit 3")
	assert.Equal(t, 3, code)
	must.JSON[spec.RunResult](t, stdout)
	assert.Contains(t, "\n"+stderr, "\nnoise\n")
}

func TestForegroundInATerminal(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	// The terminal's modes are restored.
	restored := func(t *testing.T, x *harness.Terminal, before any) {
		t.Helper()
		assert.Equal(t, before, x.Modes(), "the terminal is as it was")
	}

	t.Run("pdb", func(t *testing.T) {
		l.write("train.py", `import time
def step(x):
    return x + 1
breakpoint()
step(41)
print("looping")
while True:
    time.sleep(0.05)
`)
		x := l.atTerminal("run", "--foreground", "chief-0", "--task", "chief=1", "--task", "worker=1", "--", "bash", "-c",
			`case $TF_CONFIG in *'"type":"chief"'*|*'"type": "chief"'*) exec python3 train.py;; *) echo line; exec sleep 1000;; esac`)
		before := x.Before
		x.Expect(`\(Pdb\) $`)
		x.Shown("[worker-0]:    line\r\n")
		x.Type("b step\n")
		x.Expect(`Breakpoint 1 at .*train.py:2\r\n\(Pdb\) `)
		x.Type("c\n")
		x.Expect(`return x \+ 1\r\n\(Pdb\) `)
		x.Type("p x * 100\n")
		x.Expect(`\n4100\r\n\(Pdb\) `)
		x.Type("c\n")
		x.Expect("looping")
		assert.NotEqual(t, before, x.Modes(), "raw")
		x.Type("\x03")
		x.Expect(`Program interrupted.*\(Pdb\) `)
		x.Type("q\n")
		assert.Equal(t, 1, x.ExitCode())
		restored(t, x, before)
		x.Expect("failed")
	})

	t.Run("a shell with jobs", func(t *testing.T) {
		x := l.atTerminal("run", "--env", l.mark, "--env", "PS1=shell> ", "--foreground", "worker-0", "-n", "1", "--", "bash", "--norc", "--noprofile", "-i")
		x.Expect("shell> $")
		x.Type("sleep 1000\r")
		harness.Eventually(t, "the job runs", func() bool { return countSleeps(l.tasks()) == 1 })
		x.Type("\x1a")
		x.Expect("Stopped.*shell> $")
		x.Type("fg\r")
		x.Expect("sleep 1000\r\n")
		harness.Eventually(t, "Ctrl-C ends the job", func() bool {
			x.Type("\x03")
			return countSleeps(l.tasks()) == 0
		})
		// A late Ctrl-C discards the part of the next line that the shell has already read.
		harness.Eventually(t, "the shell has done with Ctrl-C", func() bool {
			x.Type("echo do''ne\r")
			return strings.Contains(x.Screen(), "done\r\n")
		})
		x.Type("exit 9\r")
		assert.Equal(t, 9, x.ExitCode())
	})

	t.Run("the size", func(t *testing.T) {
		x := l.atTerminal("run", "--foreground", "worker-0", "-n", "1", "--", "bash", "-c", harness.Napping(`trap 'stty size; exit' WINCH; stty size; while :; do nap; done`))
		x.Expect("24 80\r\n")
		x.Resize(40, 132)
		x.Expect("40 132\r\n")
		assert.Zero(t, x.ExitCode())
	})

	t.Run("killed", func(t *testing.T) {
		x := l.atTerminal("run", "--env", l.mark, "--foreground", "worker-0", "-n", "2", "--", "bash", "-c", harness.Napping(`trap '' TERM HUP; echo up; while :; do nap; done`))
		before := x.Before
		harness.Eventually(t, "both are up", func() bool { return strings.Count(x.Screen(), "up\r\n") == 2 })
		x.Kill(syscall.SIGTERM)
		x.Shown("repeat to kill it")
		x.Kill(syscall.SIGINT) // a second signal so soon would be merged with the first
		assert.Equal(t, 143, x.ExitCode())
		restored(t, x, before)
		harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
	})

	t.Run("keys", func(t *testing.T) {
		// Ctrl-C, Ctrl-\ and Ctrl-Z go to the task; Ctrl-] three times goes to clusterrun.
		x := l.atTerminal("run", "--foreground", "worker-0", "-n", "1", "--", "bash", "-c",
			harness.Napping(`trap 'echo INT' INT; trap 'echo QUIT' QUIT; trap 'echo TSTP' TSTP; trap 'echo stopped; exit 0' TERM; echo up; while :; do nap; done`))
		before := x.Before
		x.Expect("up\r\n")
		for key, name := range map[string]string{"\x03": "INT", "\x1c": "QUIT", "\x1a": "TSTP"} {
			x.Type(key)
			x.Shown(name + "\r\n")
		}
		x.Type("\x1d\x1d\x1d")
		assert.Equal(t, 130, x.ExitCode())
		x.Shown("stopped\r\n")
		x.Shown("got Ctrl-] three times: stopping run")
		assert.NotContains(t, x.Screen(), "SIGINT")
		restored(t, x, before)
	})

}

func TestDirectOutput_SEED77(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	direct := []string{"run", "-n", "2", "--set", "logs.redirects=0", "--tee", "0"}

	t.Run("a pipe", func(t *testing.T) {
		stdout, stderr := l.succeeds(append(direct, "--", "bash", "-c", `printf "without a prefix\n"; printf 'to stderr\n' >&2`)...)
		assert.Equal(t, strings.Repeat("without a prefix\n", 2), stdout)
		assert.Equal(t, 2, strings.Count(stderr, "to stderr\n"))
		assert.NotContains(t, stderr, "]: ")
	})
	t.Run("nobody reads", func(t *testing.T) {
		// SIGPIPE kills the programs, as it does without clusterrun.
		script := harness.Clusterrun(t) + ` run --env ` + l.mark + ` -n 2 --set logs.redirects=0 --tee 0 -- bash -c '` + harness.Napping(`while echo up; do nap; done`) + `' | head -1; echo "code ${PIPESTATUS[0]}"`
		p := harness.Start(t, l.home, harness.Env(l.home), "bash", "-c", script)
		require.Zero(t, p.ExitCode())
		assert.Equal(t, "up\ncode 141\n", p.Stdout())
		assert.Contains(t, p.Stderr(), "SIGPIPE")
		harness.Eventually(t, "no process is left", func() bool { return len(l.tasks()) == 0 })
	})
}
