package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// pools runs Python programs that use pools, on one server.
type pools struct {
	*local
	program map[string][]string
}

func newPools(t *testing.T) *pools {
	l := newLocal(t)
	// Use the interpreter itself, since python3 in PATH may be a script that needs a longer PATH.
	found := must.Get(exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output())(t)
	// The server starts before any pool, so that it does not carry the mark.
	l.ok("run", "-q", "-n", "1", "--", "true")
	return &pools{l, map[string][]string{"python": {string(found), filepath.Join(harness.Root(), "tests/e2e/testdata/pool/main.py")}}}
}

// poolProgram is a running program with pools.
type poolProgram struct {
	*harness.Process
	t    *testing.T
	dir  string
	mark string // is set in all its processes
	read int
}

func (p *pools) begin(t *testing.T, language, scenario string, env ...string) *poolProgram {
	t.Helper()
	dir := t.TempDir()
	mark := "POOL_MARK=" + dir
	env = append(harness.Env(p.home, mark, "CLUSTERRUN_BIN="+harness.Clusterrun(t), "CLUSTERRUN_DEVSERVER="+harness.Devserver(t),
		"PYTHONPATH="+filepath.Join(harness.Root(), "activities/tasks/python"), "PYTHONDONTWRITEBYTECODE=1"), env...)
	t.Cleanup(func() {
		for _, pid := range harness.Alive(mark) {
			t.Errorf("process %d outlived the test: %s", pid, harness.Cmdline(pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return &poolProgram{Process: harness.Start(t, dir, env, append(slices.Clone(p.program[language]), scenario)...), t: t, dir: dir, mark: mark}
}

// said waits for the next line of JSON.
func (p *poolProgram) said() map[string]any {
	p.t.Helper()
	var line string
	harness.Eventually(p.t, "the program says something", func() bool {
		var lines []string
		for l := range strings.Lines(p.Stdout()) {
			if strings.HasPrefix(l, "{") && strings.HasSuffix(l, "\n") {
				lines = append(lines, l)
			}
		}
		if len(lines) <= p.read {
			if p.Exited() {
				p.t.Fatalf("the program has ended\n%s\n%s", p.Stdout(), p.Stderr())
			}
			return false
		}
		line = lines[p.read]
		p.read++
		return true
	})
	said := must.JSON[map[string]any](p.t, line)
	return said
}

// gone waits until all the program's processes are gone, including those of its pools and their
// host worker.
func (p *poolProgram) gone() {
	p.t.Helper()
	harness.Eventually(p.t, "no process is left", func() bool { return len(harness.Alive(p.mark)) == 0 })
}

// ends checks that the program succeeds and leaves no processes.
func (p *poolProgram) ends() {
	p.t.Helper()
	assert.Zero(p.t, p.ExitCode(), p.Stderr())
	p.gone()
}

func (p *poolProgram) goOn() {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o644))
}

func pidsOf(t *testing.T, v any) []int {
	t.Helper()
	list, ok := v.([]any)
	require.True(t, ok, "%v", v)
	var pids []int
	for _, one := range list {
		pids = append(pids, int(one.(float64)))
	}
	return pids
}

func disjoint(t *testing.T, a, b []int) {
	t.Helper()
	for _, pid := range a {
		assert.NotContains(t, b, pid)
	}
}

const unexpectedEOF = "Unexpected EOF. Worker process may have died"

// A program that is not a file can call functions in modules.
const programOfCode = `
with open("functions.py", "w") as f:
    f.write("import clusterrun\n@clusterrun.function\ndef double(x):\n    return 2 * x\n")
import clusterrun, functions, json
with clusterrun.Pool(2) as pool:
    print(json.dumps({"values": pool.run(functions.double, args=(4,))}))
`

func TestPools(t *testing.T) {
	t.Parallel()
	p := newPools(t)
	p.program["code"] = []string{p.program["python"][0], "-c", programOfCode}
	t.Run("a program that is no file", func(t *testing.T) {
		r := p.begin(t, "code", "")
		assert.Equal(t, []any{8.0, 8.0}, r.said()["values"])
		r.ends()
		harness.Eventually(t, "it has succeeded, as the first run has, and was not cancelled", func() bool {
			_, stdout, _ := p.run("list", "--json")
			return strings.Count(stdout, `"verdict": "succeeded"`) == 2
		})
	})
	t.Run("values and errors", func(t *testing.T) { t.Parallel(); p.valuesAndErrors(t) })
	t.Run("ends of processes", func(t *testing.T) { t.Parallel(); p.endsOfProcesses(t) })
	t.Run("MPR-29 the main program raises", func(t *testing.T) {
		t.Parallel()
		r := p.begin(t, "python", "main fails")
		assert.Len(t, pidsOf(t, r.said()["pids"]), 4)
		assert.NotZero(t, r.ExitCode())
		assert.Contains(t, r.Stderr(), "an error of the main program")
		r.gone()
	})
	for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run("the main program gets "+by.String(), func(t *testing.T) {
			t.Parallel()
			r := p.begin(t, "python", "hangs")
			assert.Len(t, pidsOf(t, r.said()["pids"]), 2)
			r.Kill(by)
			assert.Equal(t, 128+int(by), r.ExitCode())
			r.gone()
		})
	}
	t.Run("MPR-34 a main program that is not guarded", func(t *testing.T) {
		dir := t.TempDir()
		main := filepath.Join(dir, "unguarded.py")
		require.NoError(t, os.WriteFile(main, []byte(`
import clusterrun, os
@clusterrun.function
def pid():
    return os.getpid()
print(clusterrun.Pool(1).run(pid))
`), 0o644))
		p.program["unguarded"] = []string{p.program["python"][0], main}
		r := p.begin(t, "unguarded", "")
		assert.Equal(t, 1, r.ExitCode())
		assert.Contains(t, r.Stderr(), "a pool was used while a process of a pool imports the main program")
		assert.Contains(t, r.Stderr(), `if __name__ == "__main__"`)
		assert.Contains(t, r.Stderr(), unexpectedEOF)
		r.gone()
	})
	t.Run("MPR-31 SEED-31 nothing is started before the first run", func(t *testing.T) {
		r := p.begin(t, "python", "same", "CLUSTERRUN_BIN="+filepath.Join(p.home, "nowhere"))
		assert.NotZero(t, r.ExitCode())
		assert.Contains(t, r.Stderr(), "the program clusterrun was not found")
	})
}

// valuesAndErrors checks what pools' runs return, in one program with consecutive pools.
func (p *pools) valuesAndErrors(t *testing.T) {
	r := p.begin(t, "python", "same,errors,kinds,order,initializer,broken,global,nested,interrupted,refused,leaves,fork")

	all := r.said()["pids"].([]any) // MPR-26: the same processes in all runs
	first := pidsOf(t, all[0])
	require.Len(t, first, 2)
	assert.NotEqual(t, first[0], first[1])
	assert.NotContains(t, first, r.Process.Process.Pid)
	require.Len(t, all, 4)
	for _, pids := range all {
		assert.Equal(t, all[0], pids)
	}

	said := r.said() // MPR-27: a pool survives a function's error
	failed := said["failed"].(map[string]any)
	assert.Contains(t, failed["error"], "This is an error.")
	assert.Len(t, pidsOf(t, said["before"]), 2)
	assert.Equal(t, said["before"], said["after"])
	assert.Equal(t, "ValueError", failed["type"])
	assert.Contains(t, failed["cause"], "worker-0: Traceback")
	assert.Contains(t, failed["cause"], `raise ValueError("This is an error.")`)

	assert.Equal(t, []any{"chief", "worker", "worker"}, r.said()["values"], "MPR-28: TF_CONFIG")

	said = r.said() // SEED-33: a run waits for all, and raises the first error in order
	assert.Contains(t, said["failed"].(map[string]any)["error"], "worker-0 fails")
	assert.Equal(t, true, said["finished"])
	assert.Equal(t, []any{0.0, 2.0}, said["values"], "None is left out, as in the seed")

	assert.Equal(t, map[string]any{"first": []any{1.0, 1.0}, "second": []any{2.0, 2.0}}, r.said(), "MPR-30: an initializer")

	failed = r.said()["failed"].(map[string]any) // of an initializer
	assert.Contains(t, failed["error"], unexpectedEOF)
	assert.Contains(t, failed["cause"], "no initialization")
	assert.NotContains(t, failed["error"], "report a bug", "it is a mistake of the caller")

	assert.Contains(t, r.said(), "values", "a pool made at program load")

	var outer, inner []int // MPR-32: nested pools
	for _, one := range r.said()["values"].([]any) {
		both := one.([]any)
		outer = append(outer, int(both[0].(float64)))
		inner = append(inner, pidsOf(t, both[1])...)
	}
	require.Len(t, outer, 2)
	require.Len(t, inner, 4)
	disjoint(t, outer, inner)
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(inner))), 4, "each has its own")

	said = r.said() // the run after an interrupted one starts new processes
	assert.Equal(t, true, said["interrupted"])
	disjoint(t, pidsOf(t, said["before"]), pidsOf(t, said["after"]))

	p.checkRefused(t, r.said())

	// The run does not fail if a process exits with code 0 between two runs; a closure for that
	// task would wait forever.
	said = r.said()
	failed = said["failed"].(map[string]any)
	assert.Contains(t, failed["error"], unexpectedEOF)
	// Whether it had already received the next call is a matter of timing.
	assert.Regexp(t, "worker-0 (has ended|exited with exit code 0)", failed["cause"])
	assert.Len(t, said["after"], 2)

	said = r.said() // a forked child has its own
	disjoint(t, pidsOf(t, said["ours"]), pidsOf(t, said["theirs"]))
	assert.Equal(t, said["ours"], said["after"])
	r.ends()
}

// checkRefused checks what is refused: D-11.
func (p *pools) checkRefused(t *testing.T, said map[string]any) {
	t.Helper()
	for name, want := range map[string]string{
		"plain":       "only registered functions are accepted: decorate <function unregistered",
		"initializer": "only registered functions are accepted: decorate <function unregistered",
		"chiefs":      "cluster has 2 chiefs; at most one is allowed",
		"empty":       "cluster has no tasks",
		"large":       "the arguments of swap have 3000",
		"odd":         "the arguments of swap: {1, 2} is not JSON",
		"elsewhere":   "function 'only_here' is not registered here",
	} {
		assert.Contains(t, said[name].(map[string]any)["error"], want, name)
	}
	assert.Equal(t, []any{0.0, 0.0}, said["after"], "the pool has not minded")
	assert.Equal(t, []any{5.0, 5.0}, said["again"], "nor what its processes do not have")
}

// endsOfProcesses kills processes of pools, and shuts down pools, in one program.
func (p *pools) endsOfProcesses(t *testing.T) {
	r := p.begin(t, "python", "dies,idle,shutdown,shutdown late")
	for _, how := range []string{"kill", "exit"} { // SEED-32: a process dies in a function
		said := r.said()
		failed := said["failed"].(map[string]any)
		assert.Equal(t, how, said["how"])
		assert.Contains(t, failed["error"], unexpectedEOF)
		assert.Equal(t, "RuntimeError", failed["type"])
		if how == "kill" {
			assert.Contains(t, failed["cause"], "SIGKILL")
		}
		before, after := pidsOf(t, said["before"]), pidsOf(t, said["after"])
		require.Len(t, after, 2)
		disjoint(t, before, after)
		for _, pid := range before {
			assert.Contains(t, []string{"", "Z"}, harness.State(pid), "of the old pool")
		}
	}

	pids := pidsOf(t, r.said()["pids"]) // SEED-32: a process is killed between two runs
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGKILL))
	r.goOn()
	said := r.said()
	failed := said["failed"].(map[string]any)
	assert.Contains(t, failed["error"], unexpectedEOF)
	assert.Contains(t, failed["cause"], "worker-1")
	disjoint(t, pids, pidsOf(t, said["after"]))

	pids = pidsOf(t, r.said()["pids"]) // Shutdown, and another run
	assert.Equal(t, true, r.said()["down"])
	for _, pid := range pids {
		assert.Contains(t, []string{"", "Z"}, harness.State(pid), "shutdown has waited")
	}
	harness.Eventually(t, "only the program itself is left", func() bool {
		return slices.Equal([]int{r.Process.Process.Pid}, harness.Alive(r.mark))
	})
	r.goOn()
	disjoint(t, pids, pidsOf(t, r.said()["pids"]))

	r.said() // Errors of a shutdown are only logged
	assert.NotContains(t, strings.ToLower(r.Stderr()), "ignoring")
	for _, pid := range harness.Alive(r.mark) {
		if strings.Contains(harness.Cmdline(pid), "--coordinator-fd") {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	r.goOn()
	assert.Equal(t, true, r.said()["down"])
	r.ends()
	assert.Regexp(t, "(?i)ignoring (an error|exception) when shutting down the pool", r.Stderr())
}
