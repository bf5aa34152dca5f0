package stacktree

import (
	"cmp"
	"path"
	"strconv"
	"strings"
)

// Kind is the kind of a frame.
type Kind string

const (
	Python Kind = "python"
	Native Kind = "native"
	// Kernel is a thread's system call, or another known state.
	Kernel Kind = "kernel"
	// Program is the process's program, as the outermost frame of a stack.
	Program Kind = "program"
	// Unknown replaces a stack that could not be captured. Its function is the reason, as a phrase
	// that follows "rank 3", such as "did not answer".
	Unknown Kind = "unknown"
	// Ended replaces a rank's stack if its process is not running.
	Ended Kind = "ended"
)

// Functions of [Kernel] frames that are not system calls.
const (
	// OnCPU is a running thread.
	OnCPU = "on a processor"
	// Uninterruptible precedes the system call of a thread in uninterruptible sleep.
	Uninterruptible = "uninterruptible sleep"
	// NoDescriptors is the system call of a thread that sleeps by calling select without
	// descriptors.
	NoDescriptors = "select without descriptors"
	// Stopped is a thread stopped by a signal or a debugger.
	Stopped = "stopped"
)

// Frame is a stack frame. It omits the address and the arguments, so that different processes'
// frames can be equal.
type Frame struct {
	Kind     Kind   `json:"kind"`
	Function string `json:"function,omitempty"`
	// File is the source file or, if unknown, the file with the machine code.
	File string `json:"file,omitempty"`
	// Line is 0 if unknown.
	Line int `json:"line,omitempty"`
}

func (f Frame) compare(g Frame) int {
	return cmp.Or(cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Function, g.Function),
		cmp.Compare(f.File, g.File), cmp.Compare(f.Line, g.Line))
}

// String formats the frame in a short form, such as "train.py:9 step".
func (f Frame) String() string {
	if f.Kind == Program {
		return path.Base(f.Function)
	}
	if f.File == "" {
		return f.Function
	}
	file := path.Base(f.File)
	if f.Line > 0 {
		file += ":" + strconv.Itoa(f.Line)
	}
	return strings.TrimSpace(file + " " + f.Function)
}

// NoAnswer replaces the stacks of ranks on a host that did not answer.
func NoAnswer(host string) Stack {
	return Stack{{Kind: Unknown, Function: "host " + host + " did not answer"}}
}

// libraryDirs occur in the paths of modules that come with Python or from a package index.
var libraryDirs = []string{"/site-packages/", "/dist-packages/", "/lib/python2", "/lib/python3", "/lib64/python3", "/lib/pypy"}

// inOwnPackage reports whether a file belongs to clusterrun's Python modules, in python/DIGEST of
// any state directory; see `clusterrun task python --dir`.
func inOwnPackage(file string) bool {
	_, after, found := strings.Cut(file, "/python/")
	digest, _, below := strings.Cut(after, "/")
	return found && below && len(digest) == 12 && strings.Trim(digest, "0123456789abcdef") == ""
}

// userCode reports whether the frame belongs to the user's program, judging by its file name.
func (f Frame) userCode() bool {
	switch f.Kind {
	case Python:
		if strings.HasPrefix(f.File, "<frozen ") {
			return false
		}
		for _, dir := range libraryDirs {
			if strings.Contains(f.File, dir) {
				return false
			}
		}
		return !inOwnPackage(f.File)
	case Native:
		return f.File != "" && !strings.Contains(path.Base(f.File), ".so") && f.Function != "_start"
	}
	return false
}

// Stack is a thread's stack, outermost frame first.
type Stack []Frame

// most limits the number of frames in a stack.
const (
	mostOuter = 24
	mostInner = 72
)

// Omitted is the function name in the frame that replaces a deep stack's middle.
const Omitted = "…"

// bounded drops a deep stack's middle, where recursion repeats.
func (s Stack) bounded() Stack {
	if len(s) <= mostOuter+1+mostInner {
		return s
	}
	out := append(Stack{}, s[:mostOuter]...)
	out = append(out, Frame{Kind: s[mostOuter].Kind, Function: Omitted})
	return append(out, s[len(s)-mostInner:]...)
}
