package taskapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
)

// roundLogSize is the size in bytes at which a new log is started. The previous log remains in the
// same directory.
const roundLogSize = 256 << 10

// roundLog holds the latest released rounds. It is not synced because, like the processes, it need
// not survive a power cut.
type roundLog struct {
	path string
	// unwritten holds the lines of rounds released since the last write. The mutex of rounds
	// guards it.
	unwritten []byte

	mu     sync.Mutex // of the file, which may hang; locked before rounds.mu
	file   *os.File   // nil until the first write
	size   int
	exists bool // or its predecessor exists
	closed bool
	err    error // why rounds are no longer logged
}

// released is a round in the log.
type released struct {
	Name         string              `json:"name"`
	Number       int                 `json:"round"`
	Participants []string            `json:"participants"` // in rank order
	Keys         map[string][]string `json:"keys"`         // by task
	Values       []string            `json:"values,omitempty"`
}

func (l *roundLog) oldPath() string { return l.path + ".old" }

// each calls f for every released round in the log. It skips an incomplete line, because no task
// was answered from it.
func (l *roundLog) each(f func(released)) {
	for _, path := range []string{l.oldPath(), l.path} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		l.exists = true
		for line := range bytes.Lines(b) {
			var rec released
			if json.Unmarshal(line, &rec) == nil {
				f(rec)
			}
		}
	}
}

// add adds a round to the unwritten lines.
func (l *roundLog) add(rec released) {
	b, err := json.Marshal(rec)
	if err == nil {
		l.unwritten = append(append(l.unwritten, b...), '\n')
	}
}

// write writes the lines that take returns. A failure must not break a barrier: the log matters
// only if the host worker crashes at this very moment.
func (l *roundLog) write(take func() []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := take()
	if l.err != nil || l.closed || len(b) == 0 {
		return
	}
	if l.file == nil {
		if l.err = l.open(os.O_APPEND); l.err != nil {
			return
		}
	}
	n, err := l.file.Write(b)
	if l.size += n; err == nil && l.size > roundLogSize {
		err = l.rotate()
	}
	l.err = err
}

func (l *roundLog) rotate() error {
	err := errors.Join(l.file.Close(), os.Rename(l.path, l.oldPath()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.open(os.O_APPEND | os.O_TRUNC)
}

func (l *roundLog) open(flags int) error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	l.file, l.exists = f, true
	info, err := f.Stat()
	if err == nil {
		l.size = int(info.Size())
	}
	return err
}

// remove removes the log once its rounds are no longer needed.
func (l *roundLog) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
	if l.exists {
		_ = os.Remove(l.path)
		_ = os.Remove(l.oldPath())
	}
}

func (l *roundLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
}

func (l *roundLog) closeLocked() {
	l.closed = true
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
