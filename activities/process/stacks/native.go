package stacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

const (
	// maxNativeThreads limits the threads of a process that are unwound. If there are more, only
	// the main thread is unwound.
	maxNativeThreads = 64
	// maxNative limits how many of a task's processes are unwound.
	maxNative = 4
	// parallelNative limits how many processes are unwound at a time.
	parallelNative = 4
	// maxNativeText limits the output for a process, in bytes.
	maxNativeText = 256 << 10
)

// nativeBound limits the time for one process's stacks. The process is stopped only while one of its
// threads is unwound. It is a variable for tests on busy machines.
var nativeBound = 2 * time.Second

var nativeSlots = make(chan struct{}, parallelNative)

// unwind adds the native stacks of processes that have not reported their position. It does so as a
// user who may read these processes. If a Python program has reported, unwind adds the main
// thread's stack, unless a Python function already shows what the thread is waiting for. Extensions
// like mpi4py do not have such functions.
func (r *report) unwind(ctx context.Context) {
	var todo []*process
	worker := r.worker()
	for _, p := range r.processes {
		silent := p.answer == "" && (p == worker || !p.waitsForChild())
		if !p.Dead() && (silent || p == worker && p.answer != "" && !r.stack().PythonTells()) {
			todo = append(todo, p)
		}
	}
	for i, p := range todo {
		switch {
		case i >= maxNative:
			p.unnative = fmt.Sprintf("not read: only %d processes of a task are read", maxNative)
		case p.State == 'D':
			p.unnative = "not read: it is in uninterruptible sleep"
		case stopped(p.Stat):
			p.unnative = "not read: it is stopped"
		default:
			select {
			case nativeSlots <- struct{}{}:
				p.unwind(ctx, r.User)
				<-nativeSlots
			case <-ctx.Done():
				p.unnative = "not done, for lack of time"
			}
		}
	}
}

// unwind runs eu-stack, which does not kill the process, but stops each thread while reading it.
func (p *process) unwind(ctx context.Context, user *hostuser.User) {
	tool, err := exec.LookPath("eu-stack")
	if err != nil {
		p.unnative = "unknown: the package elfutils, with eu-stack, is not installed on this host"
		return
	}
	args := []string{"-s", "-m", "-n", "128", "-p", strconv.Itoa(p.pid)}
	switch {
	case p.answer != "":
		args = append([]string{"-1"}, args...)
	case p.Threads > maxNativeThreads:
		args = append([]string{"-1"}, args...)
		p.unnative = fmt.Sprintf("only the main thread: it has %d, and all are shown of at most %d", p.Threads, maxNativeThreads)
	}
	ctx, cancel := context.WithTimeout(ctx, nativeBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = []string{"LC_ALL=C", "DEBUGINFOD_URLS="}
	cmd.SysProcAttr = &unix.SysProcAttr{Credential: user.Credential(), Pdeathsig: unix.SIGKILL}
	var out, errs cappedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 100 * time.Millisecond
	err = cmd.Run()
	p.native = strings.ToValidUTF8(out.String(), "?")
	if ctx.Err() != nil {
		p.resume()
		p.unnative = fmt.Sprintf("the rest took longer than %s", nativeBound)
		return
	}
	if strings.Contains(p.native, "#0 ") {
		return
	}
	p.native = ""
	p.unnative = "unknown: " + reasonOfTracer(strings.TrimSpace(errs.String()), err, ptraceScope())
}

// resume continues a process that was left stopped when its tracer was killed.
func (p *process) resume() {
	if now, err := proc.ReadStat(p.pid); err == nil && now.Ticks == p.Ticks && now.State == 'T' {
		_ = unix.Kill(p.pid, unix.SIGCONT)
	}
}

// ptraceScope returns Yama's setting, or "" if the kernel does not include Yama.
func ptraceScope() string {
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return string(bytes.TrimSpace(scope))
}

// reasonOfTracer explains why a process could not be traced. Under Yama's scope 1, a process can be
// traced by its ancestors and by a tracer that it names. Our tracer is neither. A process could
// name this one before it executes a program, but the setting is lost on fork, so it would not
// cover the processes that the program starts.
func reasonOfTracer(text string, err error, scope string) string {
	if strings.Contains(text, "Operation not permitted") {
		switch scope {
		case "1", "2":
			return "kernel.yama.ptrace_scope is " + scope + " on this host, so the host worker needs the capability SYS_PTRACE; sysctl kernel.yama.ptrace_scope=0 removes that requirement"
		case "3":
			return "kernel.yama.ptrace_scope is 3 on this host, which forbids tracing processes; only a reboot changes it"
		}
		return "the host worker may not trace it; it must run as the same user, or as root with the capability SYS_PTRACE"
	}
	if text == "" {
		text = errors.Join(err, errors.New("no frames")).Error()
	}
	first, _, _ := strings.Cut(text, "\n")
	return "eu-stack: " + printable(first, maxLine)
}

// cappedBuffer keeps the first bytes written to it.
type cappedBuffer struct{ bytes.Buffer }

func (b *cappedBuffer) Write(text []byte) (int, error) {
	if room := maxNativeText - b.Len(); room > 0 {
		b.Buffer.Write(text[:min(room, len(text))])
	}
	return len(text), nil
}

// parseNative returns a thread's stack from eu-stack's output.
func parseNative(text string, tid int) stacktree.Stack {
	var s stacktree.Stack
	here, named := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "TID "):
			here = line == "TID "+strconv.Itoa(tid)+":"
		case !here:
		case strings.HasPrefix(line, "#"):
			var f stacktree.Frame
			if f, named = parseNativeFrame(line); named {
				s = append(s, f)
			}
		case strings.HasPrefix(line, "    ") && named:
			// The line contains the frame's source, which does not matter for libraries.
			f := &s[len(s)-1]
			if file, number, ok := parseSource(strings.TrimSpace(line)); ok && !strings.Contains(path.Base(f.File), ".so") {
				f.File, f.Line = file, number
			}
		}
	}
	slices.Reverse(s) // the outermost call first
	return s
}

// parseNativeFrame parses a line such as "#1 0x00007f2b94a0de53 __nanosleep - /usr/lib/libc.so.6".
// It omits frames without a name, because only their addresses would distinguish them.
func parseNativeFrame(line string) (stacktree.Frame, bool) {
	fields := strings.Fields(line)
	if len(fields) < 2 || !strings.HasPrefix(fields[1], "0x") {
		return stacktree.Frame{}, false
	}
	_, rest, _ := strings.Cut(line, fields[1])
	rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), "- 1"))
	function, module := rest, ""
	if at := strings.LastIndex(rest, "- /"); at == 0 || at > 0 && rest[at-1] == ' ' {
		function, module = strings.TrimSpace(rest[:at]), rest[at+2:]
	}
	if function = withoutArguments(function); function == "" || startsThreads(function) {
		return stacktree.Frame{}, false
	}
	return stacktree.Frame{Kind: stacktree.Native, Function: printable(function, maxName), File: printable(module, maxName)}, true
}

// startsThreads reports whether every thread starts with function.
func startsThreads(function string) bool {
	switch strings.TrimLeft(function, "_") {
	case "start", "libc_start_main", "libc_start_call_main", "start_thread", "clone", "clone3":
		return true
	}
	return false
}

// parseSource parses "/root/ring.c:12:3" or "/root/ring.c:12".
func parseSource(text string) (string, int, bool) {
	file, rest, _ := strings.Cut(text, ":")
	line, _, _ := strings.Cut(rest, ":")
	number, err := strconv.Atoi(line)
	if err != nil || file == "" {
		return "", 0, false
	}
	return file, number, true
}

// withoutArguments returns a function's name without argument types, template arguments and symbol
// version.
func withoutArguments(name string) string {
	name, _, _ = strings.Cut(name, "@")
	name = strings.TrimPrefix(name, "__GI_")
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '(' && strings.HasPrefix(name[i:], "(anonymous namespace)"):
			if depth == 0 {
				b.WriteString("(anonymous)")
			}
			i += len("(anonymous namespace)") - 1
		case c == '(' && depth == 0 && !strings.HasSuffix(b.String(), "operator") && !strings.HasPrefix(name[i:], "(*"):
			return strings.TrimSpace(b.String())
		case c == '<' && !strings.HasSuffix(strings.TrimRight(b.String(), "<"), "operator"):
			depth++
		case c == '>' && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	if b.Len() == 0 {
		return name
	}
	return strings.TrimSpace(b.String())
}
