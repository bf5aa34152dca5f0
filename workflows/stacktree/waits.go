package stacktree

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"
)

// Reason is what a rank is waiting for, or [Running].
type Reason string

// The reasons used by [Explain]. The table of waits contains more.
const (
	// Collective is an operation that all ranks in a group must reach.
	Collective Reason = "collective"
	// Message is a message to or from another rank.
	Message Reason = "message"
	// Join starts or ends a group of ranks.
	Join Reason = "join"
	// Running means that, according to the kernel, the thread is running.
	Running Reason = "running"
)

// peers reports whether the wait depends on other ranks.
func (r Reason) peers() bool { return r == Collective || r == Message || r == Join }

// wording contains the words for a reason, such as "wait" and "for a lock", and whether they are
// followed by the name of the waiting function or by that of the user's function that called it.
type wording struct {
	verb, rest string
	byName     bool
}

var reasons = map[Reason]wording{
	Collective: {verb: "wait", byName: true},
	Message:    {verb: "wait", rest: "for another rank", byName: true},
	Join:       {verb: "wait", rest: "for others to join", byName: true},
	Running:    {verb: "run"},
	"":         {verb: "wait"},
	"device":   {verb: "wait", rest: "for a GPU"},
	"loader":   {verb: "wait", rest: "for a data loader"},
	"queue":    {verb: "wait", rest: "for a queue"},
	"pipe":     {verb: "wait", rest: "for a pipe"},
	"pool":     {verb: "wait", rest: "for a pool of processes"},
	"child":    {verb: "wait", rest: "for a child process"},
	"thread":   {verb: "wait", rest: "for a thread"},
	"future":   {verb: "wait", rest: "for a future"},
	"lock":     {verb: "wait", rest: "for a lock"},
	"socket":   {verb: "wait", rest: "for a socket"},
	"events":   {verb: "wait", rest: "for events"},
	"input":    {verb: "wait", rest: "for input"},
	"disk":     {verb: "wait", rest: "for a file or a disk"},
	"sleep":    {verb: "sleep"},
	"stopped":  {verb: "stay", rest: "stopped"},
}

//go:embed waits.txt
var waitsText string

// row is a line in the table of waits.
type row struct {
	kind                 Kind
	function, file, name string
	reason               Reason
}

// table is parsed on first use, since most commands never need it.
var table = sync.OnceValue(func() []row {
	var rows []row
	for line := range strings.Lines(waitsText) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.Split(line, "\t")
		rows = append(rows, row{kind: Kind(c[0]), function: c[1], file: c[2], reason: Reason(c[3]), name: c[4]})
	}
	return rows
})

func (r row) fits(f Frame) bool {
	if r.kind != f.Kind {
		return false
	}
	if r.file != "*" && f.File != r.file && !strings.HasSuffix(f.File, "/"+r.file) {
		return false
	}
	name := f.Function
	if f.Kind == Native {
		name = strings.ToLower(name)
	}
	ok, err := path.Match(r.function, name)
	return ok && err == nil
}

// Wait describes a stack's wait.
type Wait struct {
	Reason Reason `json:"reason,omitempty"`
	// Name is the usual name of the waiting function.
	Name string `json:"name,omitempty"`
}

// waitOf returns a stack's wait, and the index of the frame that shows it, or -1. It chooses the
// outermost such frame within the innermost user frame, because calls within a library do not
// matter, and user code in a callback is not waiting in the library that called it.
func waitOf(s Stack) (Wait, int) {
	from := len(s)
	for from > 0 && !s[from-1].userCode() {
		from--
	}
	for i := from; i < len(s); i++ {
		for _, r := range table() {
			if !r.fits(s[i]) {
				continue
			}
			name := r.name
			if name == "-" {
				name = s[i].Function
			}
			return Wait{Reason: r.reason, Name: name}, i
		}
	}
	return Wait{}, -1
}

// AwaitsHelper reports whether the stack is waiting for another process of its task, such as a data
// loader's. An idle helper also waits in this way.
func (s Stack) AwaitsHelper() bool {
	wait, _ := waitOf(s)
	switch wait.Reason {
	case "loader", "queue", "pipe", "pool", "child":
		return true
	}
	return false
}

// InUserCode reports whether the stack contains a frame in one of the user's files. Python starts
// its helpers from a program string instead.
func (s Stack) InUserCode() bool {
	return slices.ContainsFunc(s, func(f Frame) bool { return f.userCode() && !strings.HasPrefix(f.File, "<") })
}

// PythonTells reports whether Python frames show the stack's wait, or the kernel shows that the
// thread is asleep. Otherwise, native frames may show more.
func (s Stack) PythonTells() bool {
	wait, at := waitOf(s)
	return at >= 0 && (s[at].Kind == Python || wait.Reason == "sleep")
}
