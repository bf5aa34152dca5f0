package fork

import (
	"os"
	"strconv"
	"strings"
)

// oomScore is this process's oom_score_adj. When the host runs out of memory, the kernel should
// kill the supervisor last, and treat its children like any other program.
type oomScore struct {
	file string
	// protected reports whether the supervisor runs with [OOMProtected]. Its children get the score
	// in children.
	protected bool
	children  int
}

const (
	// OOMFile holds this process's score.
	OOMFile = "/proc/self/oom_score_adj"
	// OOMProtected is a score that makes the OOM killer spare the supervisor as long as it can kill
	// another process.
	OOMProtected = -900
)

// protect lowers this process's score if CAP_SYS_RESOURCE permits it.
func protect(file string) oomScore {
	s := oomScore{file: file}
	b, err := os.ReadFile(file)
	if err != nil {
		return s
	}
	if had, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		s.children = max(0, had)
		s.protected = s.write(OOMProtected) == nil
	}
	return s
}

// lower sets this process's score to that of its children until raise is called, because a child
// inherits its parent's score.
func (s oomScore) lower() (raise func()) {
	if !s.protected || s.write(s.children) != nil {
		return func() {}
	}
	return func() { _ = s.write(OOMProtected) }
}

// restore sets this process's score to that of its children.
func (s oomScore) restore() {
	if s.protected {
		_ = s.write(s.children)
	}
}

func (s oomScore) write(n int) error { return os.WriteFile(s.file, []byte(strconv.Itoa(n)), 0) }

// Protect lowers this process's score if permitted.
func (f *Forker) Protect() { f.score = protect(OOMFile) }

// Restore sets this process's score to that of its children.
func (f *Forker) Restore() { f.score.restore() }
