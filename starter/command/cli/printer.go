package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
)

// printer says what this command itself has to say: straight to stderr, or through a
// console that keeps it out of the lines of programs and of its status line. A
// goroutine of its own writes, in the order in which things were said, because whoever
// reads stderr may have stopped to: those who must not wait for that set aside.
type printer struct {
	mu      sync.Mutex
	console *tasklog.Console
	queue   []line
	leftOut int
	// written is closed once the queue has been written; nil: there is nothing in it.
	written chan struct{}
	// aside reports whether callers do not wait until their text is written.
	aside bool
	// Hurried is closed by hurry.
	Hurried chan struct{}
	// inVain reports whether the text is not read, so that callers no longer wait.
	inVain bool
}

type line struct {
	w    io.Writer
	text string
}

const (
	// MaxUnsaid bounds the messages that nobody reads.
	MaxUnsaid = 1000
	// ReadersBound is how long a command that is to end waits for whoever reads its
	// output.
	ReadersBound = 2 * time.Second
)

func (v *printer) Through(c *tasklog.Console) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.console = c
}

func (v *printer) println(w io.Writer, text string) {
	v.mu.Lock()
	if len(v.queue) == MaxUnsaid {
		v.leftOut++
		v.mu.Unlock()
		return
	}
	v.queue = append(v.queue, line{w, text})
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
func (v *printer) write() {
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

func (v *printer) next() (line, *tasklog.Console, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.queue) == 0 {
		close(v.written)
		v.written = nil
		return line{}, nil, false
	}
	next := v.queue[0]
	if v.queue = v.queue[1:]; len(v.queue) == 0 && v.leftOut > 0 {
		v.queue = append(v.queue, line{next.w, fmt.Sprintf("clusterrun: %d messages more, which nobody read, are left out", v.leftOut)})
		v.leftOut = 0
	}
	return next, v.console, true
}

// SetAside is for commands that catch signals: these must get through whoever reads
// our output.
func (v *printer) SetAside() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.aside = true
	if v.Hurried == nil {
		v.Hurried = make(chan struct{})
	}
}

// Hurry bounds the waits of flush, since the command was told to end.
func (v *printer) Hurry() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.Hurried:
	default:
		close(v.Hurried)
	}
}

// GiveUp ends the waiting for whoever reads what is said.
func (v *printer) GiveUp() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inVain = true
}

// Flush waits until everything that was said is written: as long as it takes, unless
// somebody is in a hurry.
func (v *printer) Flush() {
	v.mu.Lock()
	written, hurried, inVain := v.written, v.Hurried, v.inVain
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
	case <-time.After(ReadersBound):
		v.GiveUp()
	}
}

// logWriter says the lines of a log.
type logWriter struct{ *App }

func (l logWriter) Write(b []byte) (int, error) {
	l.Printer.println(l.Err, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// SayUnreachable tells when the server goes away, or the run does not get on,
// and when that is over.
func (a *App) SayUnreachable(err error) {
	var stuck *starter.StuckError
	switch {
	case err == nil:
		a.Say("that is over, the run goes on")
	case errors.As(err, &stuck):
		a.Say("%s", err)
	default:
		a.Say("the Temporal server does not answer; the processes go on, waiting for it (%v)", err)
	}
}
