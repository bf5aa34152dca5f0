package command

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
)

// voice says what this command itself has to say: straight to stderr, or through a
// console that keeps it out of the lines of programs and of its status line. A
// goroutine of its own writes, in the order in which things were said, because whoever
// reads stderr may have stopped to: those who must not wait for that set aside.
type voice struct {
	mu      sync.Mutex
	console *tasklog.Console
	queue   []utterance
	leftOut int
	// written is closed once the queue has been written; nil: there is nothing in it.
	written chan struct{}
	// aside reports whether callers do not wait until their text is written.
	aside bool
	// hurried is closed by hurry.
	hurried chan struct{}
	// inVain reports whether the text is not read, so that callers no longer wait.
	inVain bool
}

type utterance struct {
	w    io.Writer
	text string
}

const (
	// maxUnsaid bounds the messages that nobody reads.
	maxUnsaid = 1000
	// readersBound is how long a command that is to end waits for whoever reads its
	// output.
	readersBound = 2 * time.Second
)

func (v *voice) through(c *tasklog.Console) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.console = c
}

func (v *voice) println(w io.Writer, text string) {
	v.mu.Lock()
	if len(v.queue) == maxUnsaid {
		v.leftOut++
		v.mu.Unlock()
		return
	}
	v.queue = append(v.queue, utterance{w, text})
	if v.written == nil {
		v.written = make(chan struct{})
		go v.write()
	}
	written, aside := v.written, v.aside
	v.mu.Unlock()
	if !aside {
		<-written
	}
}

// write writes what is in the queue, and returns when that is empty.
func (v *voice) write() {
	for {
		next, console, ok := v.next()
		switch {
		case !ok:
			return
		case console != nil:
			console.Println(next.text)
		default:
			fmt.Fprintln(next.w, next.text)
		}
	}
}

func (v *voice) next() (utterance, *tasklog.Console, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.queue) == 0 {
		close(v.written)
		v.written = nil
		return utterance{}, nil, false
	}
	next := v.queue[0]
	if v.queue = v.queue[1:]; len(v.queue) == 0 && v.leftOut > 0 {
		v.queue = append(v.queue, utterance{next.w, fmt.Sprintf("clusterrun: %d messages more, which nobody read, are left out", v.leftOut)})
		v.leftOut = 0
	}
	return next, v.console, true
}

// setAside is for commands that catch signals: these must get through whoever reads
// our output.
func (v *voice) setAside() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.aside = true
	if v.hurried == nil {
		v.hurried = make(chan struct{})
	}
}

// hurry bounds the waits of flush, since the command was told to end.
func (v *voice) hurry() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.hurried:
	default:
		close(v.hurried)
	}
}

// giveUp ends the waiting for whoever reads what is said.
func (v *voice) giveUp() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inVain = true
}

// flush waits until everything that was said is written: as long as it takes, unless
// somebody is in a hurry.
func (v *voice) flush() {
	v.mu.Lock()
	written, hurried, inVain := v.written, v.hurried, v.inVain
	v.mu.Unlock()
	if written == nil || inVain {
		return
	}
	select {
	case <-written:
		return
	case <-hurried:
	}
	select {
	case <-written:
	case <-time.After(readersBound):
		v.giveUp()
	}
}

// logWriter says the lines of a log.
type logWriter struct{ *app }

func (l logWriter) Write(b []byte) (int, error) {
	l.voice.println(l.err, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}
