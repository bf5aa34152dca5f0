package cli

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
)

// Screen is our terminal as an output. While it is lent to a task, it is in raw mode, so Screen
// starts lines with a carriage return, preceded by a new line if the task's last line is
// unfinished, for example at a prompt.
type Screen struct {
	File *os.File

	Raw  atomic.Bool // whether the terminal is lent
	mu   sync.Mutex
	open bool // whether the task's last line is unfinished
}

// Write writes lines that do not come from the task.
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

// Relay writes the task's output unchanged.
func (s *Screen) Relay(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = b[len(b)-1] != '\n'
	_, _ = s.File.Write(b)
}

// Finish completes the task's last line. Call it after the terminal's modes are restored.
func (s *Screen) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		_, _ = s.File.WriteString("\n")
		s.open = false
	}
	s.Raw.Store(false)
}
