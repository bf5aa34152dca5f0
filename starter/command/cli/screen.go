package cli

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
)

// Screen is our terminal as an output. While it is lent, it does not begin lines
// at the left by itself, and lines of ours do not go into the middle of one of the
// task's, such as a prompt.
type Screen struct {
	File *os.File

	Raw  atomic.Bool // while the terminal is lent
	mu   sync.Mutex
	open bool // the task's last line is not finished
}

// Write shows lines that are not the task's.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Raw.Load() {
		return s.File.Write(b)
	}
	lines := bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
	if s.open {
		s.open = false
		lines = append([]byte("\r\n"), lines...)
	}
	if _, err := s.File.Write(lines); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Relay shows bytes of the task as they are.
func (s *Screen) Relay(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = b[len(b)-1] != '\n'
	_, _ = s.File.Write(b)
}

// Finish ends the task's last line, after the terminal's modes are back.
func (s *Screen) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		_, _ = s.File.WriteString("\n")
		s.open = false
	}
	s.Raw.Store(false)
}
