package fork

import (
	"os"
	"strconv"
	"strings"
)

// oomScore is the kernel's oom_score_adj of this process: the supervisor is killed last when
// memory runs out on the host, and its children are treated like any other program.
type oomScore struct {
	file string
	// protected reports whether the supervisor has [OOMProtected]; a child has the score
	// children.
	protected bool
	children  int
}

const (
	// OOMFile has the score of this process.
	OOMFile = "/proc/self/oom_score_adj"
	// OOMProtected keeps the supervisor alive as long as the OOM killer can kill another
	// process.
	OOMProtected = -900
)

// protect lowers the score of this process if it may, which needs CAP_SYS_RESOURCE.
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

// lower gives this process the score of its children until the returned function is
// called: a child begins with the score of its parent.
func (s oomScore) lower() (raise func()) {
	if !s.protected || s.write(s.children) != nil {
		return func() {}
	}
	return func() { _ = s.write(OOMProtected) }
}

// restore gives this process the score of its children.
func (s oomScore) restore() {
	if s.protected {
		_ = s.write(s.children)
	}
}

func (s oomScore) write(n int) error { return os.WriteFile(s.file, []byte(strconv.Itoa(n)), 0) }

// Protect lowers the score of this process if it may.
func (f *Forker) Protect() { f.score = protect(OOMFile) }

// Restore gives this process the score of its children.
func (f *Forker) Restore() { f.score.restore() }
