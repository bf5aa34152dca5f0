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
	// Kernel is the system call that a thread is in, or another known state of it.
	Kernel Kind = "kernel"
	// Program is the program of the process, the outermost frame of a stack.
	Program Kind = "program"
	// Unknown stands for a stack that could not be captured. Its function is the reason, as a
	// phrase that follows "rank 3": "did not answer".
	Unknown Kind = "unknown"
	// Ended stands for the stack of a rank without a living process.
	Ended Kind = "ended"
)

// Functions of frames of the kind [Kernel] that are not system calls.
const (
	// OnCPU is for a thread that runs.
	OnCPU = "on a processor"
	// Uninterruptible is below the system call of a thread that no signal reaches.
	Uninterruptible = "uninterruptible sleep"
	// NoDescriptors is the system call of a thread that selects from no descriptors, in order to
	// sleep.
	NoDescriptors = "select without descriptors"
	// Stopped is for a thread that a signal or a debugger has stopped.
	Stopped = "stopped"
)

// Frame is one frame of a stack. It has no address and no arguments, so that the frames of
// different processes can be equal.
type Frame struct {
	Kind     Kind   `json:"kind"`
	Function string `json:"function,omitempty"`
	// File is the file of the source or, if that is unknown, of the machine code.
	File string `json:"file,omitempty"`
	// Line is 0 if it is unknown.
	Line int `json:"line,omitempty"`
}

func (f Frame) compare(g Frame) int {
	return cmp.Or(cmp.Compare(f.Kind, g.Kind), cmp.Compare(f.Function, g.Function),
		cmp.Compare(f.File, g.File), cmp.Compare(f.Line, g.Line))
}

// String returns the frame in a short form: "train.py:9 step".
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

// NoAnswer stands for the stacks of ranks on a host that did not answer.
func NoAnswer(host string) Stack {
	return Stack{{Kind: Unknown, Function: "host " + host + " did not answer"}}
}

// libraryDirs are in the paths of modules that come with Python or from a package index.
var libraryDirs = []string{"/site-packages/", "/dist-packages/", "/lib/python2", "/lib/python3", "/lib64/python3", "/lib/pypy"}

// inOwnPackage reports whether a file is of clusterrun's modules for Python, which are in
// python/DIGEST below any state directory; see `clusterrun task python --dir`.
func inOwnPackage(file string) bool {
	_, after, found := strings.Cut(file, "/python/")
	digest, _, below := strings.Cut(after, "/")
	return found && below && len(digest) == 12 && strings.Trim(digest, "0123456789abcdef") == ""
}

// userCode reports whether the frame is of the user's own program, by the name of its file.
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

// Stack is the stack of a thread, with the outermost frame first.
type Stack []Frame

// most bounds the frames of a stack.
const (
	mostOuter = 24
	mostInner = 72
)

// Omitted is the function of the frame that stands for the middle of a deep stack.
const Omitted = "…"

// bounded returns the stack without the middle of a deep one: recursion repeats there.
func (s Stack) bounded() Stack {
	if len(s) <= mostOuter+1+mostInner {
		return s
	}
	out := append(Stack{}, s[:mostOuter]...)
	out = append(out, Frame{Kind: s[mostOuter].Kind, Function: Omitted})
	return append(out, s[len(s)-mostInner:]...)
}
