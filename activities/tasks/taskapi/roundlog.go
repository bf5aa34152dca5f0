package taskapi

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
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
	name         string
	number       int
	participants []participant // in order
	values       []string
}

type participant struct {
	task string
	keys []string
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
			if rec, ok := parseReleased(string(line)); ok {
				f(rec)
			}
		}
	}
}

// parseReleased parses a line such as "3 worker-0=key worker-0=key worker-1=key "name"". Quoted
// values follow the name.
func parseReleased(line string) (released, bool) {
	line, whole := strings.CutSuffix(line, "\n")
	at := strings.IndexByte(line, '"')
	if !whole || at < 0 {
		return released{}, false
	}
	quoted, err := unquoteAll(line[at:])
	fields := strings.Fields(line[:at])
	if err != nil || len(fields) == 0 {
		return released{}, false
	}
	number, err := strconv.Atoi(fields[0])
	rec := released{name: quoted[0], number: number}
	if len(quoted) > 1 {
		rec.values = quoted[1:]
	}
	for _, f := range fields[1:] {
		task, key, ok := strings.Cut(f, "=")
		if !ok {
			return released{}, false
		}
		if last := len(rec.participants) - 1; last >= 0 && rec.participants[last].task == task {
			rec.participants[last].keys = append(rec.participants[last].keys, key)
			continue
		}
		rec.participants = append(rec.participants, participant{task, []string{key}})
	}
	return rec, err == nil
}

// unquoteAll parses one or more quoted strings, separated by spaces.
func unquoteAll(line string) (all []string, err error) {
	for {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, err
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
		if line = line[len(quoted):]; line == "" {
			return all, nil
		}
		line = strings.TrimPrefix(line, " ")
	}
}

// add adds a round, with each participant's keys and all values, to the unwritten lines.
func (l *roundLog) add(number int, name string, participants []string, keys map[string][]string, values []string) {
	b := strconv.AppendInt(l.unwritten, int64(number), 10)
	for _, task := range participants {
		for _, key := range keys[task] {
			b = append(b, ' ')
			b = append(b, task...)
			b = append(b, '=')
			b = append(b, key...)
		}
	}
	b = append(b, ' ')
	b = strconv.AppendQuote(b, name)
	for _, value := range values {
		b = append(b, ' ')
		b = strconv.AppendQuote(b, value)
	}
	l.unwritten = append(b, '\n')
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
