package python

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// byItself returns the parts of a capture written by Python programs.
func byItself(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "--- by ") {
		if strings.HasPrefix(part, "its own account") {
			b.WriteString(part)
		}
	}
	return b.String()
}

func alive(t *testing.T, pid int) {
	t.Helper()
	stat := must.Get(os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")))(t)
	assert.NotContains(t, string(stat), ") Z ", "it has ended")
}

// A program does not notice the hook, in any Python version, and its stacks can be captured.
func TestTheHookLeavesNothingBehind(t *testing.T) {
	for version, program := range interpreters(t, "2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14") {
		p := newHooked(t)
		p.program = program
		run := func(env ...string) (string, string) {
			cmd := p.command(`
import sys, os
print("%s %s %s %s" % ([e for e in sys.path if "hook" in e], [e for e in sys.path_importer_cache if "hook" in e],
    "hook" in str(sys.modules.get("sitecustomize")), os.path.exists("/proc/self/fd/3")))
print(sorted(m for m in sys.modules if "encodings" not in m and "distutils" not in m))`)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			cmd.Env = append(cmd.Env, env...)
			require.NoError(t, cmd.Run(), version)
			return out.String(), errs.String()
		}
		out, errs := run()
		assert.Empty(t, errs, version)
		assert.Contains(t, out, "[] [] False False\n", version)
		plain, _ := run("PYTHONPATH=")
		assert.Equal(t, plain, out, version)
		if slices.Contains([]string{"2.7", "3.6", "3.7"}, version) {
			continue
		}
		pid := p.start(`
import time
def waits_here():
    print("ready", flush=True)
    time.sleep(1000)
waits_here()
`)
		p.captureUntil(pid, func(text string) bool { return strings.Contains(text, "in waits_here") })
		assert.Equal(t, 1, strings.Count(p.capture(pid), "in waits_here"), "a later answer has no earlier one")
	}
}

// A program without the package gets it from the package's program.
func TestTheHookFindsThePackage(t *testing.T) {
	for version, program := range interpreters(t, "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14") {
		p := newHooked(t)
		p.program = program
		module := must.Get(Install(t.TempDir(), ""))(t)
		binary := filepath.Join(p.logs, "clusterrun")
		require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\n[ \"$*\" = 'task python --dir' ] && echo "+module+"\n"), 0o700))
		const source = "import clusterrun; print(clusterrun.__file__)"
		assert.Error(t, p.command(source).Run(), version)
		p.path = must.Get(InstallHook(t.TempDir(), binary))(t)
		assert.Equal(t, filepath.Join(module, "clusterrun", "__init__.py")+"\n", p.output(source), version)
		own := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(own, "clusterrun.py"), nil, 0o600))
		p.path += ":" + own
		assert.Equal(t, filepath.Join(own, "clusterrun.py")+"\n", p.output(source), "another one comes first")
	}
}

// The program's own sitecustomize is executed as if it were the only one.
func TestTheUsersSitecustomize(t *testing.T) {
	p := newHooked(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "sitecustomize.py")
	p.path += ":" + dir
	require.NoError(t, os.WriteFile(file, []byte("import sys; sys.mine = __file__; here = 1"), 0o644))
	assert.Equal(t, file+" 1\n", p.output(`import sys, sitecustomize; print(sys.mine, sitecustomize.here)`))

	run := func(path string) string {
		cmd := p.command("print(1)")
		cmd.Env = append(cmd.Env, "PYTHONPATH="+path)
		cmd.Stderr = nil
		out, err := cmd.CombinedOutput()
		if err != nil {
			return string(out) + err.Error()
		}
		return string(out)
	}
	for name, source := range map[string]string{
		"fails": "raise ValueError(7)", "misses a module": "import no_such_module", "is no Python": "(",
	} {
		require.NoError(t, os.WriteFile(file, []byte(source), 0o644))
		assert.Equal(t, run(dir), run(p.path), name)
	}
}

func TestChildrenOfAllStartMethods(t *testing.T) {
	p := newHooked(t)
	file := filepath.Join(p.logs, "parent.py")
	require.NoError(t, os.WriteFile(file, []byte(`
import multiprocessing, subprocess, sys, time
def child_of(method, queue):
    queue.put(method)
    time.sleep(1000)
if __name__ == "__main__":
    for method in ["fork", "spawn", "forkserver"]:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        context.Process(target=child_of, args=(method, queue), daemon=True).start()
        queue.get()
    subprocess.Popen([sys.executable, "-c", "import time\ndef popped(): print('ready', flush=True); time.sleep(1000)\npopped()"])
    time.sleep(1000)
`), 0o644))
	pid := p.start(`import runpy; runpy.run_path("` + file + `", run_name="__main__")`)
	p.captureUntil(pid, func(text string) bool {
		return strings.Count(byItself(text), "in child_of") == 3 && strings.Contains(byItself(text), "in popped")
	})
}

// A program that changes itself does not hide from the hook, and the hook does not take a signal
// from it.
func TestProgramsThatChangeThemselves(t *testing.T) {
	for name, c := range map[string]struct {
		source  string
		answers bool
	}{
		"replaces os.environ and sys.path": {`os.environ.clear(); os.environ = {}; sys.path[:] = []`, true},
		"replaces all handlers": {`
def ends(*_): os._exit(9)
for s in signal.valid_signals():
    if s not in (signal.SIGKILL, signal.SIGSTOP): signal.signal(s, ends)`, false},
		"uses the signal":        {`signal.signal(60, lambda *_: os._exit(9))`, false},
		"ignores the signal":     {`signal.signal(60, signal.SIG_IGN)`, false},
		"closes all descriptors": {`os.closerange(3, 2000); f = open(os.devnull, "w")`, false},
		"unregisters it":         {`import faulthandler; faulthandler.enable(); faulthandler.unregister(60)`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHooked(t)
			pid := p.start("import os, signal, sys, threading, time\n" + c.source + `
print("ready", flush=True)
time.sleep(1000)
`)
			assert.Equal(t, c.answers, byItself(p.capture(pid)) != "")
			alive(t, pid)
		})
	}
}

// Interpreters that ignore their environment are not asked, and run as usual.
func TestInterpretersWithoutTheHook(t *testing.T) {
	for _, flag := range []string{"-S", "-I", "-E"} {
		p := newHooked(t)
		pid := p.start(`
import os, sys
os.execv(sys.executable, [sys.executable, "` + flag + `", "-c", "import time; print('ready', flush=True); time.sleep(1000)"])
`)
		text := p.capture(pid)
		assert.Empty(t, byItself(text), flag)
		assert.Contains(t, text, "--- by the kernel's", flag)
		alive(t, pid)
	}
}

func TestAStuckProgramThatKnowsNothing(t *testing.T) {
	p := newHooked(t)
	pid := p.start(`
import ctypes
def calls_native_code():
    ctypes.PyDLL(None).sleep(1000)  # holds the lock of the interpreter
print("ready", flush=True)
calls_native_code()
`)
	p.captureUntil(pid, func(text string) bool { return strings.Contains(byItself(text), "in calls_native_code") })
}

// Python dumps only the 100 newest threads, which may not include the main one.
func TestAProgramOfManyThreads(t *testing.T) {
	p := newHooked(t)
	pid := p.start(`
import threading
forever = threading.Event()
for _ in range(500):
    threading.Thread(target=forever.wait, daemon=True).start()
print("ready", flush=True)
forever.wait()
`)
	text := p.capture(pid)
	assert.Contains(t, text, "the main thread is not shown: Python reports the 100 newest threads")
	assert.Contains(t, text, "more threads are not shown")
	alive(t, pid)
}

// The hook also serves other users' tasks, who can read it but not change it.
func TestTheHookIsReadable(t *testing.T) {
	root := t.TempDir()
	dir := must.Get(InstallHook(root, ""))(t)
	again := must.Get(InstallHook(root, ""))(t)
	assert.Equal(t, dir, again)
	for _, path := range []string{dir, filepath.Join(dir, "sitecustomize.py")} {
		info := must.Get(os.Stat(path))(t)
		assert.Equal(t, os.FileMode(0o044), info.Mode().Perm()&0o066, path)
	}
}
