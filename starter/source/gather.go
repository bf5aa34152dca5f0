package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// patience is the longest time from Begin after which nothing waits any longer.
	patience = 500 * time.Millisecond
	// maxDifference bounds what is read of git, and maxPacked the compressed patch that is kept.
	maxDifference, maxPacked = 8 << 20, 256 << 10
	// mostFiles and mostUntracked bound the lists.
	mostFiles, mostUntracked = 1000, 100
)

// Gathering is a question to git in progress.
type Gathering struct {
	until  time.Time
	stop   context.CancelFunc
	result chan *Source
}

// Begin asks about the first of the directories that is in a work tree.
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

// Result returns the state, or nil outside of a work tree. It may be called once, and on nil.
func (g *Gathering) Result() *Source {
	if g == nil {
		return nil
	}
	defer g.stop()
	return <-g.result // git is killed at the deadline
}

// topOf returns the top of the work tree that a directory is in, or an empty string.
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

// gather returns the state of a work tree, with a note about parts that git did not tell in time. It
// returns nil if git knows no work tree there.
func gather(ctx context.Context, top string) *Source {
	text, err := git(ctx, top, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--no-renames")
	s := &Source{Dir: top}
	if err != nil {
		// The commit is known without a look at the files.
		out, headErr := git(context.WithoutCancel(ctx), top, "rev-parse", "HEAD")
		if headErr != nil {
			return nil
		}
		s.Commit, s.Note = strings.TrimSpace(out), "the changes since the commit are not known: "+why(ctx, err)
		return s
	}
	changed := s.read(text)
	if changed == 0 || s.Commit == "" {
		return s
	}
	patch, err := git(ctx, top, "-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
		"--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--submodule=short", "HEAD", "--")
	if err != nil {
		s.Note = "the changes since the commit are not known: " + why(ctx, err)
		return s
	}
	s.take(patch)
	return s
}

// read reads the answer of git status, and returns the number of changed files.
func (s *Source) read(text string) (changed int) {
	for _, line := range strings.Split(text, "\x00") {
		key, value, _ := strings.Cut(line, " ")
		name, of, _ := strings.Cut(value, " ")
		switch {
		case key == "#" && name == "branch.oid" && of != "(initial)":
			s.Commit = of
		case key == "#" && name == "branch.head" && of != "(detached)":
			s.Branch = of
		case key == "1", key == "2", key == "u":
			changed++
		case key == "?" && len(s.Untracked) < mostUntracked:
			s.Untracked = append(s.Untracked, strings.ToValidUTF8(value, "\uFFFD"))
		case key == "?":
			s.MoreUntracked++
		}
	}
	return changed
}

// take keeps a difference, or as many files of it as the bound allows.
func (s *Source) take(patch string) {
	all := sections(strings.ToValidUTF8(patch, "\uFFFD"))
	if len(patch) >= maxDifference {
		all = all[:max(0, len(all)-1)] // git was not read to the end
		s.Note = fmt.Sprintf("of the difference only the first %d MiB were read", maxDifference>>20)
	}
	omitted := make([]bool, len(all))
	for i, part := range all {
		f := File{Name: part.name, Binary: part.binary}
		f.Added, f.Removed = part.counts()
		all[i], omitted[i] = part.withoutSecrets()
		f.Omitted = omitted[i]
		s.Files = append(s.Files, f)
	}
	bySize := make([]int, len(all))
	for i := range bySize {
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(len(all[b].body), len(all[a].body)) })
	join := func() {
		var b strings.Builder
		for _, part := range all {
			b.WriteString(part.head + part.body)
		}
		s.Patch = b.String()
	}
	left := 0
	for join(); len(s.Patch) > 0 && len(s.pack()) > maxPacked && left < len(bySize); join() {
		// Half of what is left is a step that ends soon.
		for range max(1, (len(bySize)-left)/8) {
			at := bySize[left]
			all[at].body, s.Files[at].Omitted = leftOut, true
			left++
		}
	}
	if left > 0 {
		s.Note = strings.TrimPrefix(s.Note+"; "+fmt.Sprintf("the difference is too large: the content of %d of %d files is left out", left, len(all)), "; ")
	}
	if more := len(s.Files) - mostFiles; more > 0 {
		s.Files = s.Files[:mostFiles]
		s.Note = strings.TrimPrefix(s.Note+"; "+fmt.Sprintf("%d more files are changed", more), "; ")
	}
}

// why says why git has not answered.
func why(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "git took longer than " + patience.String()
	}
	return err.Error()
}

// git runs git in a directory and returns a bounded part of its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// It must not ask, lock, or fetch.
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")
	var out, errs bounded
	out.left, errs.left = maxDifference, 1<<10
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = patience
	err := cmd.Run()
	if err != nil && out.left == 0 && ctx.Err() == nil {
		err = nil // it was cut off
	}
	if err != nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n"); line != "" {
			err = errors.New(line)
		}
	}
	return out.String(), err
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	if n < len(p) {
		return n, io.ErrShortWrite // ends git
	}
	return n, nil
}
