package stacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

func TestParseStatus(t *testing.T) {
	s := parseStatus([]byte("Name:\tpython3\nNSpid:\t4711\t12\nSigCgt:\t0800000000000002\n"))
	assert.Equal(t, []int{4711, 12}, s.ids, "the last is its own in a container")
	assert.True(t, s.catches(60))
	assert.True(t, s.catches(2))
	assert.False(t, s.catches(59))
	assert.Equal(t, status{}, parseStatus(nil))
}

func TestParseCall(t *testing.T) {
	link := func(fd int) string { return map[int]string{5: "(pipe:[1])"}[fd] }
	for raw, want := range map[string]string{
		"running\n": "", "": "", "-1 0x7ffe 0x7f": "",
		"99999 0x1 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f": "system call 99999",
	} {
		assert.Equal(t, want, parseCall([]byte(raw), link).String(), raw)
	}
	for number, name := range onDescriptor {
		raw := []byte(strconv.Itoa(number) + " 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f")
		assert.Equal(t, name+" on descriptor 5 (pipe:[1])", parseCall(raw, link).String())
		assert.NotContains(t, others, number)
	}
	for number, name := range others {
		assert.Equal(t, name, parseCall([]byte(strconv.Itoa(number)+" 0x5 0x0"), link).String())
	}
}

func TestParseKernelStack(t *testing.T) {
	assert.Equal(t, []string{"futex_wait+0x1/0x2", "do_syscall_64+0x1/0x2"},
		parseKernelStack([]byte("[<0>] futex_wait+0x1/0x2\n[<0>] do_syscall_64+0x1/0x2\n")))
	assert.Len(t, parseKernelStack([]byte(strings.Repeat("[<0>] again\n", 1000))), maxFrames+1)
	assert.Empty(t, parseKernelStack(nil))
}

func TestParseCgroup(t *testing.T) {
	for raw, want := range map[string]string{
		"0::/user.slice/clusterrun-i1/hash-0-worker-0-0\n":            "/user.slice/clusterrun-i1/hash-0-worker-0-0",
		"1:name=x:/y\n0::/clusterrun-i1/hash-0-worker-0-0/below/it\n": "/clusterrun-i1/hash-0-worker-0-0",
		"0::/clusterrun-i1\n": "", "0::/\n": "", "": "", "0::/system.slice/clusterrun.service\n": "",
	} {
		assert.Equal(t, want, parseCgroup([]byte(raw)), raw)
	}
}

func TestPrintable(t *testing.T) {
	assert.Equal(t, `a\x1b[31m\nb?é`, printable("a\x1b[31m\nb\xffé", 100))
	assert.Equal(t, "abc…", printable("abcdefg", 6))
	assert.Equal(t, "a\tb\n\\x00\n", printableLines("a\tb\n\x00"))
}

func TestOwnerOfATableWithACircle(t *testing.T) {
	all := table{5: {PPID: 6}, 6: {PPID: 5}}
	assert.Zero(t, ownerOf(5, all, map[int]int{}), "a table is no snapshot")
}

// If a shell's only child has just exited, the shell is the worker.
func TestTheWorkerOfATask(t *testing.T) {
	shell := &process{pid: 1, threads: []thread{{channel: "do_wait"}}}
	child := &process{pid: 2, Stat: proc.Stat{PPID: 1}, threads: []thread{{channel: "hrtimer_nanosleep"}}}
	r := &report{processes: []*process{shell, child}}
	require.Same(t, child, r.worker())
	child.ended = true
	require.Same(t, shell, r.worker())
}

// A process that waits for its helpers shows the one that runs the program's code.
func TestTheHelperOfATask(t *testing.T) {
	python := func(pid, parent int, frames ...string) *process {
		p := &process{pid: pid, Stat: proc.Stat{PPID: parent}, command: "python3 train.py", answer: "Current thread 0x1 (most recent call first):\n"}
		for _, f := range frames {
			file, function, _ := strings.Cut(f, " ")
			p.answer += fmt.Sprintf("  File \"%s\", line 3 in %s\n", file, function)
		}
		return p
	}
	const get, main = "/usr/lib/python3.11/multiprocessing/queues.py get", "/job/train.py <module>"
	leader, idle, tracker := python(1, 0, get, main), python(2, 1, get, main), python(3, 1, "/usr/lib/python3.11/multiprocessing/resource_tracker.py main", "<string> <module>")
	busy, its := python(4, 1, "/job/data.py open_remote", main), python(5, 4, "/job/data.py child", main)
	r := &report{processes: []*process{leader, idle, tracker, its}}
	require.Equal(t, leader.stack(), r.stack(), "all wait for work")
	r.processes = append(r.processes, busy)
	require.Equal(t, append(leader.stack(), busy.stack()...), r.stack())
	busy.ended = true
	require.Equal(t, leader.stack(), r.stack())
	busy.ended, leader.answer = false, python(1, 0, "/job/train.py step", main).answer
	require.Equal(t, leader.stack(), r.stack(), "it does not wait for them")
}

// A slow tracer is killed, and a thread that it left stopped continues.
func TestATracerThatHangs(t *testing.T) {
	p := startProgram(t, nil, "bash", "-c", "echo ready; exec sleep 1000").sleeps()
	tool := script(t, "eu-stack", fmt.Sprintf("#!/bin/sh\necho 'TID %d:'; kill -STOP %d; exec sleep 1000\n", p.pid, p.pid))
	require.NoError(t, os.Chmod(tool, 0o700))
	t.Setenv("PATH", filepath.Dir(tool)+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	state := func() byte {
		s := must.Get(proc.ReadStat(p.pid))(t)
		return s.State
	}
	s := must.Get(proc.ReadStat(p.pid))(t)
	read := &process{pid: p.pid, Stat: s}
	done := make(chan struct{})
	go func() { defer close(done); read.unwind(ctx, nil) }()
	eventually(t, "it is stopped", func() bool { return state() == 'T' })
	cancel() // as on timeout
	<-done
	assert.Equal(t, "the rest took longer than "+nativeBound.String(), read.unnative)
	eventually(t, "it continues", func() bool { return state() == 'S' })
}

// Neither signals nor debuggers reach a process in uninterruptible sleep.
func TestUninterruptibleSleep(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
	// A vfork's parent is in that state until the child executes a program.
	source := script(t, "forks.c", `
#include <unistd.h>
int main(void) { if (vfork() == 0) { write(1, "ready\n", 6); while (1) pause(); } return 0; }
`)
	binary := filepath.Join(filepath.Dir(source), "forks")
	out, err := exec.Command("gcc", "-w", "-o", binary, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p := startProgram(t, nil, binary)
	r := p.captureTask(p.task())
	require.NoError(t, r.Err)
	assert.Equal(t, stacktree.Frame{Kind: stacktree.Kernel, Function: stacktree.Uninterruptible}, r.Stack[len(r.Stack)-1])
	text := must.Get(os.ReadFile(r.File))(t)
	assert.Contains(t, string(text), "in uninterruptible sleep (D), parent")
	assert.Contains(t, string(text), "by its machine code: not read: it is in uninterruptible sleep")
	found := stacktree.Explain(stacktree.Of(0, r.Stack), func(int) string { return "" })
	assert.Equal(t, "waits for a child process in forks", found.Classes[0].Does())
}

// The sentence names the obstructing setting, and only what can be changed.
func TestWhyAProcessCannotBeTraced(t *testing.T) {
	failed := errors.New("exit status 1")
	denied := "eu-stack: dwfl_linux_proc_attach pid 1: Operation not permitted"
	for _, c := range []struct{ scope, text, want string }{
		{"", denied, "the host worker may not trace it; it must run as the same user, or as root with the capability SYS_PTRACE"},
		{"0", denied, "the host worker may not trace it; it must run as the same user, or as root with the capability SYS_PTRACE"},
		{"1", denied, "kernel.yama.ptrace_scope is 1 on this host, so the host worker needs the capability SYS_PTRACE; sysctl kernel.yama.ptrace_scope=0 removes that requirement"},
		{"2", denied, "kernel.yama.ptrace_scope is 2 on this host, so the host worker needs the capability SYS_PTRACE; sysctl kernel.yama.ptrace_scope=0 removes that requirement"},
		{"3", denied, "kernel.yama.ptrace_scope is 3 on this host, which forbids tracing processes; only a reboot changes it"},
		{"1", "eu-stack: no such process", "eu-stack: eu-stack: no such process"},
		{"", "", "eu-stack: exit status 1"},
	} {
		assert.Equal(t, c.want, reasonOfTracer(c.text, failed, c.scope), "%+v", c)
	}
}

// The frames of Python extensions follow those in Python.
func TestNativeFramesBelowPython(t *testing.T) {
	native := parseNative(`TID 7:
#0  0x1 __futex_abstimed_wait_common - /usr/lib/libc.so.6
#1  0x2 c10d::ProcessGroupGloo::AsyncWork::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >) - /usr/lib/libtorch_cpu.so.1.13.0
#2  0x3 _PyEval_EvalFrameDefault - /usr/bin/python3.11
#3  0x4 main - /usr/bin/python3.11
`, 7)
	var names []string
	for _, f := range belowPython(native) {
		names = append(names, f.Function)
	}
	assert.Equal(t, []string{"c10d::ProcessGroupGloo::AsyncWork::wait", "__futex_abstimed_wait_common"}, names)
	assert.Empty(t, belowPython(native[:2]), "the interpreter itself")
}
