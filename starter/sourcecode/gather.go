package sourcecode

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// patience limits how long anything waits, counted from Begin.
	patience = 500 * time.Millisecond
	// maxFiles limits the number of listed files.
	maxFiles = 300
)

// Gathering is a git query in progress.
type Gathering struct {
	until  time.Time
	stop   context.CancelFunc
	result chan *Source
}

// Known returns a completed gathering. s may be nil.
func Known(s *Source) *Gathering {
	g := &Gathering{stop: func() {}, result: make(chan *Source, 1)}
	g.result <- s
	return g
}

// Begin queries the first of dirs that is in a work tree.
func Begin(ctx context.Context, dirs ...string) *Gathering {
	g := &Gathering{until: time.Now().Add(patience), result: make(chan *Source, 1)}
	for _, dir := range dirs {
		if top := topOf(dir); top != "" {
			ctx, g.stop = context.WithDeadline(ctx, g.until)
			go func() { g.result <- gather(ctx, top) }()
			return g
		}
	}
	g.stop = func() {}
	g.result <- nil
	return g
}

// Result returns the state, or nil outside a work tree. It may be called once, and on a nil
// Gathering.
func (g *Gathering) Result() *Source {
	if g == nil {
		return nil
	}
	defer g.stop()
	return <-g.result // git is killed at the deadline
}

// topOf returns the top of dir's work tree, or an empty string.
func topOf(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// gather returns a work tree's state, with a note about parts that git did not report in time.
// It returns nil if git does not recognise a work tree.
func gather(ctx context.Context, top string) *Source {
	text, err := git(ctx, top, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--no-renames")
	s := &Source{Dir: top}
	if err != nil {
		// The commit does not depend on the files.
		out, headErr := git(context.WithoutCancel(ctx), top, "rev-parse", "HEAD")
		if headErr != nil {
			return nil
		}
		s.Commit, s.Note = strings.TrimSpace(out), "the changes since the commit are unknown: "+why(ctx, err)
		return s
	}
	s.read(text)
	if err := s.digest(ctx); err != nil {
		s.Note = "some digests are unknown: " + why(ctx, err)
	}
	return s
}

// read parses the output of git status.
func (s *Source) read(text string) {
	for _, line := range strings.Split(text, "\x00") {
		key, value, _ := strings.Cut(line, " ")
		name, of, _ := strings.Cut(value, " ")
		switch {
		case key == "#" && name == "branch.oid" && of != "(initial)":
			s.Commit = of
		case key == "#" && name == "branch.head" && of != "(detached)":
			s.Branch = of
		case key == "?":
			s.add(value, "untracked")
		case key == "1":
			s.add(afterFields(value, 7), stateOf(name))
		case key == "u":
			s.add(afterFields(value, 9), "in conflict")
		}
	}
}

// afterFields returns the rest of a line after n fields.
func afterFields(line string, n int) string {
	for range n {
		_, line, _ = strings.Cut(line, " ")
	}
	return line
}

// stateOf translates git status's two letters, for the index and the work tree, into a file's
// state.
func stateOf(letters string) string {
	switch {
	case strings.Contains(letters, "D"):
		return "removed"
	case strings.Contains(letters, "A"):
		return "added"
	}
	return "changed"
}

func (s *Source) add(name, state string) {
	if len(s.Files) == maxFiles {
		s.More++
		return
	}
	s.Files = append(s.Files, File{Name: name, State: state})
}

// digest queries the files' digests. If an error occurs, it keeps the earlier answers.
func (s *Source) digest(ctx context.Context) error {
	var files []*File
	args := []string{"hash-object", "--"}
	for i := range s.Files {
		f := &s.Files[i]
		// Directories, links, and deleted files cannot be hashed.
		if info, err := os.Lstat(filepath.Join(s.Dir, f.Name)); err == nil && info.Mode().IsRegular() {
			files, args = append(files, f), append(args, f.Name)
		}
	}
	if len(files) == 0 {
		return nil
	}
	out, err := git(ctx, s.Dir, args...)
	digests := strings.Fields(out)
	for i, f := range files[:min(len(files), len(digests))] {
		f.Digest = digests[i]
	}
	return err
}

// why explains why git did not answer.
func why(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "git took longer than " + patience.String()
	}
	return err.Error()
}

// git runs git in a directory and returns its output, even if it fails.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// git must not prompt, lock, or fetch.
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")
	cmd.WaitDelay = patience
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		if line, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n"); line != "" {
			err = errors.New(line)
		}
	}
	return string(out), err
}
