package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Source is the state of a git work tree.
type Source struct {
	// Dir is the top of the work tree on the host of the starter.
	Dir string `json:"dir"`
	// Commit is empty before the first one, and Branch while no branch is checked out.
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Files are the tracked files that differ from the commit.
	Files []File `json:"files,omitempty"`
	// Untracked are names of files and directories that git neither tracks nor ignores, and
	// MoreUntracked counts those that are not listed.
	Untracked     []string `json:"untracked,omitempty"`
	MoreUntracked int      `json:"more_untracked,omitempty"`
	// Patch is the difference to the commit, as git writes it.
	Patch string `json:"patch,omitempty"`
	// Note says what is missing, and why.
	Note string `json:"note,omitempty"`
}

// File is a file that differs from the commit, with the numbers of added and removed lines.
type File struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	// Omitted reports whether the patch lacks its content.
	Omitted bool `json:"omitted,omitempty"`
}

// String returns "train.py (+3 −1)".
func (f File) String() string {
	if f.Binary {
		return f.Name + " (binary)"
	}
	return f.Name + " " + Counts(f.Added, f.Removed)
}

// Counts returns "(+3 −1)".
func Counts(added, removed int) string { return fmt.Sprintf("(+%d −%d)", added, removed) }

// Revision returns "3f2c1a9d01 (main)".
func (s *Source) Revision() string {
	const short = 10
	text := "no commit yet"
	if s.Commit != "" {
		text = s.Commit[:min(short, len(s.Commit))]
	}
	if s.Branch != "" {
		text += " (" + s.Branch + ")"
	}
	return text
}

// Lines returns the state as text for users.
func (s *Source) Lines() []string {
	const most = 8
	lines := []string{s.Dir + " at " + s.Revision()}
	if len(s.Files) > 0 {
		names := list.Of(s.Files, func(f File) string { return f.String() })
		lines = append(lines, "changed since: "+shorten.List(names, most))
	}
	if n := len(s.Untracked) + s.MoreUntracked; n > 0 {
		lines = append(lines, plural.Of(n, "untracked file", "untracked files")+": "+shorten.List(s.Untracked, most))
	}
	if s.Note != "" {
		lines = append(lines, s.Note)
	}
	return lines
}

// Lines are lines of a file.
type Lines struct{ Added, Removed []string }

// Between returns the lines that only one of two states of a file has, if both have the same
// commit. It is exact unless a line that was moved or repeated differs in its place only.
func Between(a, b *Source, name string) (onlyA, onlyB []string) {
	la, lb := linesOf(a.Patch, name), linesOf(b.Patch, name)
	onlyA = append(without(la.Added, lb.Added), without(lb.Removed, la.Removed)...)
	onlyB = append(without(lb.Added, la.Added), without(la.Removed, lb.Removed)...)
	return onlyA, onlyB
}

// linesOf returns the lines of a file in a patch.
func linesOf(patch, name string) (l Lines) {
	for _, s := range sections(patch) {
		if s.name != name {
			continue
		}
		for line := range strings.Lines(s.body) {
			switch text := strings.TrimSuffix(line[1:], "\n"); line[0] {
			case '+':
				l.Added = append(l.Added, text)
			case '-':
				l.Removed = append(l.Removed, text)
			}
		}
	}
	return l
}

// without returns the lines of a that b lacks. Each line of b counts once.
func without(a, b []string) (rest []string) {
	count := map[string]int{}
	for _, line := range b {
		count[line]++
	}
	for _, line := range a {
		if count[line]--; count[line] < 0 {
			rest = append(rest, line)
		}
	}
	return rest
}

// Names returns the names of the files that differ from the commit in one of two states, sorted.
func Names(a, b *Source) (names []string) {
	for _, f := range slices.Concat(a.Files, b.Files) {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pack returns the compressed patch.
func (s *Source) pack() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = io.WriteString(w, s.Patch)
	_ = w.Close()
	return b.Bytes()
}

// unpack reads the result of pack.
func unpack(b []byte) (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxDifference))
	return string(text), err
}
