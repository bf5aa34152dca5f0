package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// tmux is a terminal of tmux's with a shell.
type tmux struct {
	t      *testing.T
	socket string
}

func startTmux(t *testing.T, env []string) *tmux {
	t.Helper()
	program, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("there is no tmux")
	}
	x := &tmux{t, filepath.Join(t.TempDir(), "tmux")}
	cmd := exec.Command(program, "-f", "/dev/null", "-S", x.socket, "new-session", "-d", "-x", "110", "-y", "20", "exec /bin/sh")
	cmd.Env = append(env, "PS1=shell$ ", "LC_ALL=C.UTF-8", "TERM=xterm", "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { _ = exec.Command(program, "-S", x.socket, "kill-server").Run() })
	x.shows(`^shell\$`)
	return x
}

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	require.NoError(x.t, err, "%s", out)
	return string(out)
}

func (x *tmux) keys(keys ...string) { x.t.Helper(); x.do(append([]string{"send-keys"}, keys...)...) }

func (x *tmux) screen() string { return strings.TrimRight(x.do("capture-pane", "-p"), "\n ") }

// shows waits until the screen matches.
func (x *tmux) shows(pattern string) {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	defer func() {
		if x.t.Failed() {
			x.t.Logf("the screen:\n%s", x.screen())
		}
	}()
	harness.Eventually(x.t, "the screen shows "+pattern, func() bool { return re.MatchString(x.screen()) })
}

// top shows a run, its tasks and their output, and acts on them after a question. It restores
// the terminal at any end.
func TestTop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	home := t.TempDir()
	x := startTmux(t, harness.Env(home, "TEMPORAL_ADDRESS="+f.Address))
	_, err := starter.Start(t.Context(), f.client, &spec.RunSpec{
		Name: "iris", Dir: f.dir,
		Tasks: []spec.TaskGroup{group("worker", 2, `echo "says $RANK"; echo $$ > pid$RANK; exec sleep 10000`)},
	}, starter.Options{ID: "iris-1"})
	require.NoError(t, err)
	before := f.file("pid1")

	x.keys(harness.Clusterrun(t)+" top", "Enter")
	x.shows(`(?m)^iris-1 +running +- +worker=2 `)
	x.keys("Enter")
	x.shows(`(?m)^worker-1 +running +host-a +[0-9]+ +0 .* says 1$`)
	x.keys("/", "w", "o", "r", "k", "e", "r", "-", "1", "Enter")
	x.shows(`(?m)^run iris-1: running · 2 running · /worker-1: 1$`)
	x.keys("r")
	x.shows(`restart worker-1 of run iris-1\? y/n`)
	x.keys("n")
	x.shows(`(?m)^not done$`)
	x.keys("r", "y")
	x.shows(`(?m)^worker-1 +running +host-a +[0-9]+ +1 `)
	harness.Eventually(t, "it has another process", func() bool { return f.file("pid1") != before })
	x.keys("Escape")
	x.shows(`(?m)^worker-0 +running`)
	x.keys("l")
	x.shows(`(?m)^\[worker-0\]: +says 0$`)
	x.shows(`(?m)^\[worker-1\]: +says 1\n(.*\n)*\[worker-1\]: +says 1$`)
	x.do("resize-window", "-x", "60", "-y", "10")
	x.shows(`(?m)^esc back.*…$`)
	x.keys("3")
	x.shows(`(?m)^host-a +ready +2 of .* iris-1$`)

	x.keys("C-z")
	x.shows(`(?m)^shell\$$`)
	x.keys("stty -a | grep -o ' -*icanon'; fg", "Enter")
	x.shows(`(?m)^host-a +ready `)
	x.keys("q")
	x.shows(`(?m)^ icanon\n(.*\n)*shell\$$`)
	x.keys("clear; "+harness.Clusterrun(t)+" top iris-1; echo ended with $?; stty -a | grep -o ' -*icanon'", "Enter")
	x.shows(`(?m)^worker-1 +running`)
	shell := must.Get(strconv.Atoi(strings.TrimSpace(x.do("display-message", "-p", "#{pane_pid}"))))(t)
	programs := harness.Children(shell)
	require.Len(t, programs, 1)
	require.NoError(t, syscall.Kill(programs[0], syscall.SIGTERM))
	x.shows(`(?m)^ended with 143\n icanon\nshell\$$`)
	x.keys("clear; "+harness.Clusterrun(t)+" top iris-1", "Enter")
	x.shows(`(?m)^worker-1 +running`)
	x.keys("s", "y")
	x.shows(`(?m)^run iris-1: cancelled `)
	x.keys("q")
	x.shows(`(?m)^shell\$$`)

	stderr := f.Fails(t, 2, "top")
	assert.Contains(t, stderr, "top needs a terminal")
	assert.Contains(t, stderr, "--json")
}
