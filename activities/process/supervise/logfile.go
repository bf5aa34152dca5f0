package supervise

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// unwrittenMost limits the messages that wait to be written.
	unwrittenMost = 1000
	// lastWords limits the time for writing the last messages.
	lastWords = time.Second
)

// LogFile is a log file that never makes the supervisor wait even if the file's reader stops
// reading or its disk hangs. One goroutine writes. Messages that do not fit into its queue are
// dropped and counted.
type LogFile struct {
	entries chan entry
	dropped atomic.Int64
}

// entry is a message, a call of Sync, or the end.
type entry struct {
	text   []byte
	synced chan<- struct{}
	end    bool
}

// NewLogFile returns a LogFile that writes to out.
func NewLogFile(out io.WriteCloser) *LogFile {
	l := &LogFile{entries: make(chan entry, unwrittenMost)}
	go l.writeTo(out)
	return l
}

func (l *LogFile) writeTo(out io.WriteCloser) {
	for e := range l.entries {
		if e.end {
			_ = out.Close()
			return
		}
		if e.synced != nil {
			close(e.synced)
			continue
		}
		_, _ = out.Write(e.text)
		if len(l.entries) == 0 {
			if n := l.dropped.Swap(0); n > 0 {
				fmt.Fprintf(out, "%d messages were dropped here because nobody read them in time\n", n)
			}
		}
	}
}

// End closes the file after writing all earlier messages. Later messages are dropped.
func (l *LogFile) End() {
	select {
	case l.entries <- entry{end: true}:
	case <-time.After(lastWords):
	}
}

// Write implements [io.Writer].
func (l *LogFile) Write(text []byte) (int, error) {
	select {
	case l.entries <- entry{text: append([]byte(nil), text...)}: // the caller reuses its buffer
	default:
		l.dropped.Add(1)
	}
	return len(text), nil
}

// Sync waits until all earlier messages are written, for a limited time.
func (l *LogFile) Sync() error {
	synced, over := make(chan struct{}), time.After(lastWords)
	select {
	case l.entries <- entry{synced: synced}:
	case <-over:
		return nil
	}
	select {
	case <-synced:
	case <-over:
	}
	return nil
}
