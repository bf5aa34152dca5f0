package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
)

// printer writes the command's own messages to stderr, or through a console that separates them
// from programs' lines and from its status line. A goroutine writes them in order, because
// stderr's reader may have stopped reading. Callers that must not wait for the reader call
// SetAside first.
type printer struct {
	mu      sync.Mutex
	console *tasklog.Console
	queue   []line
	leftOut int
	// written is closed once the queue has been written. It is nil if the queue is empty.
	written chan struct{}
	// aside reports whether callers return before their text is written.
	aside bool
	// Hurried is closed by Hurry. It is nil before SetAside.
	Hurried chan struct{}
	// inVain reports whether Flush no longer waits, because stderr is not being read.
	inVain bool
}

type line struct {
	w    io.Writer
	text string
}

const (
	// MaxUnsaid is the maximum number of unwritten messages. Further messages are counted and
	// dropped.
	MaxUnsaid = 1000
	// ReadersBound limits how long an exiting command waits for its output to be read.
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

// write writes the queued messages and returns when the queue is empty.
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
		v.queue = append(v.queue, line{next.w, fmt.Sprintf("clusterrun: %d more unread messages omitted", v.leftOut)})
		v.leftOut = 0
	}
	return next, v.console, true
}

// SetAside makes callers return before their text is written. Commands that catch signals call it,
// so that the reader of our output cannot delay the reaction to a signal.
func (v *printer) SetAside() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.aside = true
	if v.Hurried == nil {
		v.Hurried = make(chan struct{})
	}
}

// Hurry limits Flush's wait, because the command was asked to exit. SetAside must have been
// called.
func (v *printer) Hurry() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.Hurried:
	default:
		close(v.Hurried)
	}
}

// GiveUp makes Flush return without waiting for the reader.
func (v *printer) GiveUp() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inVain = true
}

// Flush waits until all messages are written, or after [printer.Hurry], at most [ReadersBound].
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

// logWriter writes a log's lines through the printer.
type logWriter struct{ *App }

func (l logWriter) Write(b []byte) (int, error) {
	l.Printer.println(l.Err, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// SayUnreachable reports that the server does not answer or that the run is stuck, or, if err is
// nil, that this is over.
func (a *App) SayUnreachable(err error) {
	switch {
	case err == nil:
		a.Say("the problem is resolved; the run continues")
	case starter.IsError[*starter.StuckError](err):
		a.Say("%s", err)
	default:
		a.Say("the Temporal server does not answer; the processes continue and wait for it (%v)", err)
	}
}
