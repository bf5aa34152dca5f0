package stacks

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

func python(function, file string, line int) stacktree.Frame {
	return stacktree.Frame{Kind: stacktree.Python, Function: function, File: file, Line: line}
}

func TestTheMainThreadOfAPythonProgram(t *testing.T) {
	const answer = `Thread 0x00007f169802c2c0 [pool] (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x00007f169802c2c1 (most recent call first):
  File "/root/a, line 3.py", line 12 in load in batch
  File "<string>", line ??? in ???
`
	want := stacktree.Stack{python("???", "<string>", 0), python("load in batch", "/root/a, line 3.py", 12)}
	assert.Equal(t, want, parsePython(answer))
	assert.Equal(t, want, parsePython("\x00\x00"+answer), "after a hole in the file")
	other := "\nThread 0x1 (most recent call first):\n  File \"b.py\", line 1 in main\n"
	assert.Equal(t, stacktree.Stack{python("main", "b.py", 1)}, parsePython(answer+other), "the oldest thread is the main one")
	assert.Equal(t, want, parsePython(answer+other+"...\n"), "the oldest are not shown: the one with the signal is the main one")
	assert.Empty(t, parsePython("...\n"))
	assert.Empty(t, parsePython("a program's own words\n  File \"x\", line\n"))
}

func TestNativeStacks(t *testing.T) {
	const text = `PID 1 - process
TID 1:
#0  0x00007f2b94a09545 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6
    ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48:7
#1  0x000055b6d710e17b - 1 ns::(anonymous namespace)::Loader<int, std::vector<char> >::next(int, char const*) - /tmp/st/w
    /tmp/st/w.cc:4:46
#2  0x000055b6d710e200 - /tmp/st/w
    /tmp/st/dropped.cc:9
#3  0x000055b6d710e1c5 main - /tmp/st/w
#4  0x00007f2b9496124a __libc_start_call_main - /usr/lib/x86_64-linux-gnu/libc.so.6
#5  0x000055b6d710e081 _start - /tmp/st/w
TID 2:
#0  0x00007f2b94a09545 other - /usr/lib/x86_64-linux-gnu/libc.so.6
`
	native := func(function, file string, line int) stacktree.Frame {
		return stacktree.Frame{Kind: stacktree.Native, Function: function, File: file, Line: line}
	}
	assert.Equal(t, stacktree.Stack{
		native("main", "/tmp/st/w", 0), native("ns::(anonymous)::Loader::next", "/tmp/st/w.cc", 4),
		native("clock_nanosleep", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0),
	}, parseNative(text, 1))
	for name, want := range map[string]string{
		"operator<<(std::ostream&, int)": "operator<<", "A::operator()(int) const": "A::operator()", "f<g<int>>": "f", "__GI_poll": "poll",
		"main.(*T).Run": "main.(*T).Run", "core::fmt::write": "core::fmt::write", "<a>": "<a>", "": "",
	} {
		assert.Equal(t, want, withoutArguments(name), name)
	}
}

// A program in C is unwound, and continues. A shell that waits for it is not the task's worker.
func TestAProgramInC(t *testing.T) {
	for _, tool := range []string{"eu-stack", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool)
		}
	}
	source := script(t, "waits.c", `
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void waits_here(int n) { puts("ready"); fflush(stdout); while (1) sleep(n); }
int main(void) { waits_here(1000); return 0; }
`)
	binary := filepath.Join(filepath.Dir(source), "waits")
	out, err := exec.Command("gcc", "-g", "-O0", "-o", binary, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p := startProgram(t, nil, "bash", "-c", binary+"; exit 1")
	var r Result
	eventually(t, "it sleeps", func() bool {
		r = p.captureTask(p.task())
		require.NoError(t, r.Err)
		return len(r.Stack) > 0 && r.Stack[len(r.Stack)-1].Function == "clock_nanosleep"
	})
	found := stacktree.Explain(stacktree.Of(0, r.Stack), func(int) string { return "" })
	require.Len(t, found.Classes, 1)
	assert.Equal(t, "sleeps in waits_here", found.Classes[0].Does())
	var lines []string
	for _, f := range found.Classes[0].Place {
		lines = append(lines, f.String())
	}
	assert.Equal(t, []string{"waits.c:4 waits_here", "waits.c:5 main"}, lines)
	text := must.Read(t, r.File) // reuse the capture: on a busy machine, another one may exceed its time limit
	assert.Regexp(t, regexp.MustCompile(`(?s)by its machine code\nPID.*waits_here`), text)
	assert.Equal(t, 1, strings.Count(text, "by its machine code"), "not the shell's")
	p.alive()
}

// A stopped process is left alone and stays stopped.
func TestAStoppedProcessStaysStopped(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", "echo ready; kill -STOP $$; sleep 1000")
	eventually(t, "it is stopped", func() bool {
		s := must.Get(proc.ReadStat(p.pid))(t)
		return s.State == 'T'
	})
	r := p.captureTask(p.task())
	require.NoError(t, r.Err)
	assert.Equal(t, stacktree.Frame{Kind: stacktree.Kernel, Function: stacktree.Stopped}, r.Stack[len(r.Stack)-1])
	s := must.Get(proc.ReadStat(p.pid))(t)
	assert.Equal(t, byte('T'), s.State)
	assert.Contains(t, p.capture(), "by its machine code: not read: it is stopped")
}
