package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/tests/harness"
)

// The conformance suite is a table of all ways to run a program on two tasks, and what each
// promises. Each cell runs once, observed by exit code, output and processes, as users do.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(*testing.T) *place{
		"run": runsHere, "torchrun": torchrunHere, "submit": submits, "remote": runsRemotely, "H": runsBySSH, "agents": agentsMeet,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := way(t)
			for _, promise := range []struct {
				name  string
				holds func(*place)
			}{
				{"exit code", (*place).exitCode}, {"root cause", (*place).rootCause}, {"output", (*place).output}, {"stdin", (*place).stdin},
				{"restart of one", (*place).restartOfOne}, {"restart of all", (*place).restartOfAll},
				{"a signal", (*place).signal}, {"two signals", (*place).twoSignals},
				{"kill of a task", (*place).killOfATask}, {"kill of the command", (*place).killOfTheCommand}, {"kill of the supervisor", (*place).killOfTheSupervisor},
				{"kill of the Temporal side", (*place).killOfTheSide}, {"kill of the server", (*place).killOfTheServer}, {"kill of all", (*place).killOfAll},
			} {
				t.Run(promise.name, func(t *testing.T) {
					p.t = t
					promise.holds(p)
				})
			}
		})
	}
}

// place is where programs run.
type place struct {
	t *testing.T
	// dir is the tasks' directory, and homes are clusterrun's home directories.
	dir   string
	homes []string
	env   []string
	// task is the tasks' type.
	task string
	// argv is the command line for a bash script, with additional flags.
	argv func(id, script string, flags []string) []string
	// once and again are the flags for one restart, of one task or all tasks.
	once, again []string
	// code maps a task's exit code to the command's.
	code func(int) int
	// second is the second agent, if two commands form one run.
	second func(script string, flags []string) *harness.Process
	// attached reports whether the run lives only as long as its command.
	attached bool
	// restartServer kills the server, calls the function, and waits for a new server.
	restartServer func(while func())
	// cli runs another command in the same place.
	cli func(args ...string) (code int, stdout, stderr string)
	// restore resets the place after everything was killed.
	restore func()
	runs    int
}

// flagsOfRun restart one task or all tasks.
func (p *place) flagsOfRun() {
	p.task, p.once, p.again = "worker", []string{"--max-restarts", "1"}, []string{"--restart-scope", "group", "--max-restarts", "1"}
	p.code = func(code int) int { return code }
}

func runsHere(t *testing.T) *place {
	l := newLocal(t)
	p := &place{dir: l.home, homes: []string{l.home}, env: harness.Env(l.home), attached: true, cli: l.run}
	p.flagsOfRun()
	p.argv = func(id, script string, flags []string) []string {
		return append(append([]string{harness.Clusterrun(t), "run", "--id", id, "-n", "2"}, flags...), "--", "bash", "-c", script)
	}
	p.restartServer = l.restartServer
	return p
}

// restartServer kills the embedded server. The next process to need it restarts it.
func (l *local) restartServer(while func()) {
	l.t.Helper()
	last := l.server()
	require.NotNil(l.t, last)
	require.NoError(l.t, syscall.Kill(last.PID, syscall.SIGKILL))
	while()
	l.awaitServer(last)
}

func torchrunHere(t *testing.T) *place {
	p := runsHere(t)
	p.task, p.once, p.again = "default", nil, []string{"--max-restarts", "1"}
	p.code = onlyOne
	p.argv = func(_, script string, flags []string) []string {
		return append(append([]string{harness.Clusterrun(t), "torchrun", "--nproc-per-node", "2"}, flags...), "--no-python", "bash", "-c", script)
	}
	return p
}

// onlyOne is torchrun's exit code.
func onlyOne(code int) int { return min(code, 1) }

// onAWorker is a place with a server and a host worker.
func onAWorker(t *testing.T) *place {
	f := newFixture(t)
	p := &place{dir: f.dir, homes: []string{f.worker.Home()}, env: harness.Env(t.TempDir(), "TEMPORAL_ADDRESS="+f.Address)}
	p.flagsOfRun()
	p.cli = func(args ...string) (int, string, string) { return f.CLI(p.t, args...) }
	p.restartServer = func(while func()) {
		f.Kill()
		while()
		f.Restart()
	}
	p.restore = f.worker.Restart
	return p
}

func runsRemotely(t *testing.T) *place {
	p := onAWorker(t)
	p.argv = func(id, script string, flags []string) []string {
		return append(append([]string{harness.Clusterrun(t), "run", "--remote", "--dir", p.dir, "--id", id, "-n", "2"}, flags...), "--", "bash", "-c", script)
	}
	return p
}

// submits follows a submitted run's logs, and then waits for it.
func submits(t *testing.T) *place {
	p := onAWorker(t)
	p.argv = func(id, script string, flags []string) []string {
		return append(append([]string{"sh", "-c", `"$0" submit "$@" >&2 && "$0" logs -f ` + id + `; exec "$0" wait ` + id,
			harness.Clusterrun(t), "--dir", p.dir, "--id", id, "-n", "2"}, flags...), "--", "bash", "-c", script)
	}
	return p
}

func runsBySSH(t *testing.T) *place {
	h := newOnHosts(t, 2)
	p := &place{dir: h.home, homes: []string{h.home, h.Dir}, env: harness.Env(h.home), attached: true, cli: h.run, restartServer: h.restartServer}
	p.flagsOfRun()
	p.argv = func(id, script string, flags []string) []string {
		return append(append([]string{harness.Clusterrun(t), "run", "--dir", h.home, "--launch-agent", h.Agent, "--id", id, "-H", "a,b"}, flags...), "--", "bash", "-c", script)
	}
	return p
}

// agentsMeet runs the same torchrun command line on two hosts.
func agentsMeet(t *testing.T) *place {
	h := harness.StartSSHHosts(t, 2)
	home := t.TempDir()
	p := &place{dir: home, homes: []string{home}, env: harness.Env(home), task: "default", code: onlyOne, again: []string{"--max-restarts", "1"}, attached: true}
	on := func(host *harness.SSHHost, script string, flags []string) []string {
		return append(append(h.LoggedIn(host, harness.Clusterrun(t),
			"torchrun", "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "a:29400", "--rdzv-id", "job"), flags...), "--no-python", "bash", "-c", script)
	}
	p.argv = func(_, script string, flags []string) []string { return on(h.Hosts[0], script, flags) }
	p.second = func(script string, flags []string) *harness.Process {
		return harness.Start(p.t, home, p.env, on(h.Hosts[1], script, flags)...)
	}
	return p
}

// started is a run in a place.
type started struct {
	*harness.Process
	*place
	other *harness.Process
	id    string
	mark  string
}

// marks counts this process's runs.
var marks atomic.Int32

// begin runs a script. In the script, $MARK is a number of seconds that is unique to its processes'
// command lines, and $DIR is a private directory.
func (p *place) begin(script string, flags ...string) *started {
	p.t.Helper()
	return p.beginWith("", script, flags...)
}

// beginWith is begin with the input in a pipe as stdin.
func (p *place) beginWith(input, script string, flags ...string) *started {
	p.t.Helper()
	p.runs++
	s := &started{place: p, id: fmt.Sprint("c", p.runs), mark: fmt.Sprintf("1000.%d%03d", os.Getpid(), marks.Add(1))}
	require.NoError(p.t, os.MkdirAll(s.file(""), 0o777))
	script = harness.Napping("nap; MARK=" + s.mark + "; cd " + s.id + "; " + script)
	argv := p.argv(s.id, script, flags)
	if input != "" {
		argv = append([]string{"sh", "-c", `printf '` + input + `' | "$@"`, "sh"}, argv...)
	}
	if p.second != nil {
		s.other = p.second(script, flags)
	}
	s.Process = harness.Start(p.t, p.dir, p.env, argv...)
	p.t.Cleanup(func() {
		for _, pid := range s.tasks() {
			assert.Failf(p.t, "a process is left", "%d: %s", pid, harness.Cmdline(pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return s
}

// file returns the path of a file that the run's tasks wrote.
func (s *started) file(name string) string { return filepath.Join(s.place.dir, s.id, name) }

// lines waits until the tasks have written n lines to a file, and returns them in order.
func (s *started) lines(name string, n int) (lines []string) {
	s.t.Helper()
	harness.Eventually(s.t, fmt.Sprint(name, " has ", n, " lines"), func() bool {
		ended := s.Exited() && s.attached
		b, _ := os.ReadFile(s.file(name))
		lines = strings.Fields(string(b))
		require.False(s.t, ended && len(lines) < n, s.said())
		return len(lines) >= n
	})
	slices.Sort(lines)
	return lines
}

func (s *started) let(name string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.file(name), nil, 0o666))
}

// tasks returns the tasks' processes.
func (s *started) tasks() []int {
	return slices.DeleteFunc(harness.Alive(s.mark), func(pid int) bool {
		line := harness.Cmdline(pid)
		return !strings.HasPrefix(line, "sleep ") && !strings.HasPrefix(line, "bash -c ")
	})
}

func (s *started) gone() {
	s.t.Helper()
	harness.Eventually(s.t, "no process is left", func() bool { return len(s.tasks()) == 0 })
}

// said returns the commands' output.
func (s *started) said() string {
	said := s.Stdout() + s.Stderr()
	if s.other != nil {
		said += s.other.Stdout() + s.other.Stderr()
	}
	return said
}

// ends checks that the run finishes with the code and leaves nothing behind.
func (s *started) ends(code int) {
	s.t.Helper()
	require.Equal(s.t, code, s.ExitCode(), s.said())
	s.gone()
}

// upToGo is a task that writes a line to the file pids, starts a child in a separate session, and
// succeeds once it may finish.
const upToGo = `setsid sleep $MARK & echo $$ >> pids; until [ -e go ]; do nap; done`

func (p *place) exitCode() {
	p.begin("exit 0").ends(0)
	p.begin("exit $((RANK * 7))").ends(p.code(7))
	p.begin("[ $RANK = 0 ] || kill -9 $$; exec sleep $MARK").ends(p.code(128 + 9))
}

// The first failure is named with its last output, and stops the second task.
func (p *place) rootCause() {
	s := p.begin("[ $RANK = 1 ] || exec sleep $MARK; echo 'ValueError: no data' >&2; exit 7")
	s.ends(p.code(7))
	assert.Regexp(p.t, `Root cause: `+p.task+`-1 on \S+ \(rank 1, pid \d+\)`, s.said())
	assert.Contains(p.t, s.said(), "\n      ValueError: no data\n")
}

// All output arrives, with each task's streams in order.
func (p *place) output() {
	const n = 2000
	s := p.begin(fmt.Sprintf("for i in {1..%d}; do echo $RANK out $i; echo $RANK err $i >&2; done; printf \"$RANK out end \"", n))
	s.ends(0)
	all := map[string]string{"out": s.Stdout(), "err": s.Stderr()}
	if s.other != nil {
		require.Zero(p.t, s.other.ExitCode())
		all["out"] += "\n" + s.other.Stdout()
		all["err"] += s.other.Stderr()
	}
	for stream, text := range all {
		for rank := range 2 {
			var got, want []string
			word := fmt.Sprint(rank, " ", stream, " ")
			for line := range strings.Lines(text) {
				if _, rest, found := strings.Cut(line, word); found {
					got = append(got, strings.Fields(rest)[0])
				}
			}
			for i := range n {
				want = append(want, fmt.Sprint(i+1))
			}
			if stream == "out" {
				want = append(want, "end")
			}
			assert.True(p.t, slices.Equal(want, got), "%q has %d lines, or in another order, of %d", word, len(got), len(want))
		}
	}
}

// The first task reads stdin if it is a pipe, where that is possible.
func (p *place) stdin() {
	if p.second != nil {
		p.t.Skip("each agent has a stdin")
	}
	s := p.beginWith(`a\nb\n`, "echo $RANK:$(cat)")
	if !p.attached {
		if s.ExitCode() == 2 {
			assert.Contains(p.t, s.Stderr(), "tasks cannot read this command's stdin")
			return
		}
		assert.Contains(p.t, s.Stdout(), "0:\n")
		return
	}
	s.ends(0)
	assert.Regexp(p.t, `(?m)^(\[worker-0\]: +)?0:a b$`, s.Stdout())
	assert.Regexp(p.t, `(?m)^(\[worker-1\]: +)?1:$`, s.Stdout())
}

func (p *place) restartOfOne() {
	if p.once == nil {
		p.t.Skip("all tasks are started again")
	}
	s := p.begin("echo $RANK-$CLUSTERRUN_RESTART_COUNT >> starts; [ $RANK = 0 ] || [ $CLUSTERRUN_RESTART_COUNT = 1 ]", p.once...)
	s.ends(0)
	assert.Equal(p.t, []string{"0-0", "1-0", "1-1"}, s.lines("starts", 3))
}

// No process remains after all restart, and restarts are limited.
func (p *place) restartOfAll() {
	s := p.begin(`echo $RANK-$CLUSTERRUN_GENERATION >> starts
if [ $CLUSTERRUN_GENERATION = 1 ]; then for pid in $(cat pids); do ! kill -0 $pid 2>/dev/null || echo $pid >> left; done; until [ $(wc -l < starts) = 4 ]; do nap; done; exit $((RANK * 5)); fi
echo $$ >> pids; until [ $(wc -l < pids) = 2 ]; do nap; done; [ $RANK = 0 ] || exit 3; trap "" TERM; setsid sleep $MARK & sleep $MARK & wait; wait`,
		append(slices.Clone(p.again), p.shortGrace()...)...)
	s.ends(p.code(5))
	assert.Equal(p.t, []string{"0-0", "0-1", "1-0", "1-1"}, s.lines("starts", 4))
	assert.NoFileExists(p.t, s.file("left"))
}

// shortGrace are flags for tasks that ignore their stop signal.
func (p *place) shortGrace() []string {
	if p.task == "default" {
		return []string{"--shutdown-timeout", "1"}
	}
	return []string{"--set", "stop={grace: 500ms}"}
}

// One signal stops the tasks, which may exit within their grace, and their run. A run that does not
// belong to the command continues without it.
func (p *place) signal() {
	s := p.begin(`trap 'echo asked >> asked; exit 0' TERM INT; echo $$ >> pids; while :; do nap; done`)
	s.lines("pids", 2)
	if p.attached {
		s.Kill(syscall.SIGINT)
		assert.Equal(p.t, 130, s.ExitCode(), s.said())
	} else {
		s.Kill(syscall.SIGTERM)
		s.ExitCode()
		assert.NotEmpty(p.t, s.tasks())
		code, stdout, stderr := p.cli("stop", "--wait", s.id)
		assert.Zero(p.t, code, stdout+stderr)
	}
	assert.Len(p.t, s.lines("asked", 2), 2)
	s.gone()
}

func (p *place) twoSignals() {
	if !p.attached {
		p.t.Skip("the run goes on without its command")
	}
	s := p.begin(`trap '' TERM INT; setsid sleep $MARK & echo $$ >> pids; while :; do nap; done`)
	s.lines("pids", 2)
	s.Kill(syscall.SIGINT)
	harness.Eventually(p.t, "it says that it stops", func() bool { return strings.Contains(s.Stderr(), "repeat to kill it") })
	s.Kill(syscall.SIGTERM)
	s.ends(130)
	assert.Contains(p.t, s.Stderr(), "got SIGTERM: killing run", "their grace was not waited for")
}

func (p *place) killOfATask() {
	s := p.begin(upToGo)
	pid := 0
	_, err := fmt.Sscan(s.lines("pids", 2)[0], &pid)
	require.NoError(p.t, err)
	require.NoError(p.t, syscall.Kill(pid, syscall.SIGKILL))
	s.ends(p.code(128 + 9))
	assert.Contains(p.t, s.said(), "SIGKILL")
}

func (p *place) killOfTheCommand() {
	s := p.begin(upToGo)
	s.lines("pids", 2)
	s.Kill(syscall.SIGKILL)
	s.ExitCode()
	if !p.attached {
		assert.NotEmpty(p.t, s.tasks())
		s.let("go")
		code, stdout, stderr := p.cli("wait", s.id)
		assert.Zero(p.t, code, stdout+stderr)
	}
	s.gone()
	if s.other != nil {
		assert.Equal(p.t, 125, s.other.ExitCode())
		return
	}
	harness.Eventually(p.t, "no run is open", func() bool {
		code, stdout, _ := p.cli("list", "--open", "--json")
		return code == 0 && stdout == "[]\n"
	})
}

// machinery returns clusterrun's processes at the place with a string in their command lines.
func (p *place) machinery(text string) (pids []int) {
	for _, home := range p.homes {
		for _, pid := range harness.Alive("HOME=" + home) {
			if line := harness.Cmdline(pid); strings.Contains(line, text) && strings.HasPrefix(filepath.Base(strings.Fields(line)[0]), "clusterrun") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Tasks do not outlive their supervisors, and none restarts by mistake.
func (p *place) killOfTheSupervisor() {
	s := p.begin(upToGo)
	s.lines("pids", 2)
	supervisors := p.machinery(supervise.ProgramName)
	require.NotEmpty(p.t, supervisors)
	for _, pid := range supervisors {
		require.NoError(p.t, syscall.Kill(pid, syscall.SIGKILL))
	}
	s.gone()
	if p.restore != nil {
		p.restore()
	}
	assert.Equal(p.t, p.code(125), p.code(s.ExitCode()), s.said())
	assert.Len(p.t, s.lines("pids", 2), 2)
}

// Processes that talk to the server may die, and the same tasks continue.
func (p *place) killOfTheSide() {
	s := p.begin(upToGo)
	before := s.lines("pids", 2)
	sides := append(p.machinery(" side"), p.machinery(" home-worker")...)
	if len(sides) == 0 {
		s.let("go")
		s.ends(0)
		p.t.Skip("it is the command itself")
	}
	for _, pid := range sides {
		require.NoError(p.t, syscall.Kill(pid, syscall.SIGKILL))
	}
	s.let("go")
	s.ends(0)
	assert.Equal(p.t, before, s.lines("pids", 2))
}

// The same processes continue while the server is down, and the run is later notified of their
// exits.
func (p *place) killOfTheServer() {
	if p.restartServer == nil {
		p.t.Skip("it is on the first host, which only that agent reaches")
	}
	s := p.begin(`echo $$ >> pids; until [ -e go-$RANK ]; do nap; done`)
	before := s.lines("pids", 2)
	p.restartServer(func() {
		s.let("go-1")
		harness.Eventually(p.t, "one ends while the server is away", func() bool { return len(s.tasks()) <= 1 })
	})
	s.let("go-0")
	s.ends(0)
	assert.Equal(p.t, before, s.lines("pids", 2))
}

// Nothing remains if all clusterrun processes are killed simultaneously.
func (p *place) killOfAll() {
	s := p.begin(upToGo)
	s.lines("pids", 2)
	all := append(p.machinery("clusterrun"), s.Cmd.Process.Pid)
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} { // so that none sees another one die
		for _, pid := range all {
			if !strings.Contains(harness.Cmdline(pid), "devserver") {
				_ = syscall.Kill(pid, signal)
			}
		}
	}
	s.gone()
	if p.restore != nil {
		p.restore()
	}
}
