package stacks

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// stack returns the main thread's stack in the process that does the task's work, followed by the
// stack of the child for which it waits. The result is empty if unknown.
func (r *report) stack() stacktree.Stack {
	p := r.worker()
	if p == nil {
		return nil
	}
	s := p.stack()
	if s.AwaitsHelper() {
		s = append(s, r.helper(p)...)
	}
	return s
}

// helper returns the stack of the oldest child that runs the program's code while its parent p
// waits for it, such as a data loader's process. The result is empty if all children are waiting
// for work.
func (r *report) helper(p *process) stacktree.Stack {
	for _, q := range r.processes {
		if q.PPID != p.pid || q.Dead() || q.ended || q.answer == "" {
			continue
		}
		if s := q.stack(); s.InUserCode() && !s.AwaitsHelper() {
			return s
		}
	}
	return nil
}

// stack returns the main thread's stack, or an empty stack if unknown.
func (p *process) stack() stacktree.Stack {
	s := stacktree.Stack{{Kind: stacktree.Program, Function: p.program()}}
	switch {
	case p.answer != "":
		s = append(s, parsePython(p.answer)...)
		s = append(s, belowPython(parseNative(p.native, p.pid))...)
	case p.native != "":
		s = append(s, parseNative(p.native, p.pid)...)
	}
	if len(p.threads) == 0 && len(s) == 1 {
		if len(p.gaps) == 0 {
			return nil
		}
		return stacktree.Stack{{Kind: stacktree.Unknown, Function: "has a process that cannot be read: " + p.gaps[0]}}
	}
	if len(p.threads) > 0 {
		s = append(s, p.threads[0].frames()...)
	}
	return s
}

// worker returns the process that does the task's work: the leader or, if that is a shell or
// another program waiting for its only child, the child.
func (r *report) worker() *process {
	if len(r.processes) == 0 {
		return nil
	}
	p := r.processes[0]
	for range r.processes {
		var children []*process
		for _, q := range r.processes {
			if q.PPID == p.pid && !q.Dead() && !q.ended {
				children = append(children, q)
			}
		}
		if len(children) != 1 || p.answer != "" || !p.waitsForChild() {
			break
		}
		p = children[0]
	}
	return p
}

// waitsForChild reports whether any thread is waiting for a child. In Go programs, it is not the
// main thread.
func (p *process) waitsForChild() bool {
	return slices.ContainsFunc(p.threads, func(t thread) bool {
		return t.call.name == "wait4" || t.call.name == "waitid" || t.channel == "do_wait"
	})
}

// program returns the process's program name.
func (p *process) program() string {
	if words := strings.Fields(p.command); len(words) > 0 {
		return path.Base(strings.Trim(words[0], `"`))
	}
	return p.Name
}

// frames returns the kernel's information as frames of package stacktree.
func (t *thread) frames() stacktree.Stack {
	var s stacktree.Stack
	kernel := func(function, file string) {
		s = append(s, stacktree.Frame{Kind: stacktree.Kernel, Function: function, File: file})
	}
	switch {
	case t.call.timer:
		kernel(stacktree.NoDescriptors, "")
	case t.call.name != "":
		kernel(t.call.name, t.call.sort)
	case t.channel != "":
		kernel(t.channel, "")
	}
	switch t.State {
	case 'R':
		kernel(stacktree.OnCPU, "")
	case 'D':
		kernel(stacktree.Uninterruptible, "")
	case 'T', 't':
		kernel(stacktree.Stopped, "")
	}
	return s
}

// parsePython returns the main thread's stack from the output of Python's faulthandler. The main
// thread is the last one, because it is the oldest. If there are too many threads to show it, the
// result is the stack of the signaled thread.
func parsePython(text string) stacktree.Stack {
	var current, last stacktree.Stack
	inCurrent, cut := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n\x00")
		switch {
		case strings.HasSuffix(line, "(most recent call first):"):
			inCurrent, last = strings.HasPrefix(line, "Current thread"), nil
		case line == "...":
			cut = true
		default:
			f, ok := parsePythonFrame(line)
			if !ok {
				continue
			}
			last = append(last, f)
			if inCurrent {
				current = append(current, f)
			}
		}
	}
	if cut {
		last = current
	}
	slices.Reverse(last) // the outermost call first
	return last
}

func parsePythonFrame(line string) (stacktree.Frame, bool) {
	rest, ok := strings.CutPrefix(line, `  File "`)
	at := strings.LastIndex(rest, `", line `)
	if !ok || at < 0 {
		return stacktree.Frame{}, false
	}
	number, function, _ := strings.Cut(rest[at+len(`", line `):], " in ")
	n, _ := strconv.Atoi(number) // may be ???
	return stacktree.Frame{Kind: stacktree.Python, Function: printable(function, maxName), File: printable(rest[:at], maxName), Line: n}, true
}

// belowPython returns the native frames that the interpreter last called.
func belowPython(s stacktree.Stack) stacktree.Stack {
	for i, f := range slices.Backward(s) {
		if file := path.Base(f.File); strings.HasPrefix(file, "python") || strings.HasPrefix(file, "libpython") {
			return s[i+1:]
		}
	}
	return nil
}

const maxName = 256
