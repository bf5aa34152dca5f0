package spec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Problem is one mistake in a spec or a request.
type Problem struct {
	// Path is the field, such as "tasks[1].overrides.3.env.A", or empty for the whole document.
	Path string `json:"path,omitempty"`
	// Line is the document's line, from 1. It is 0 if there is no document or if the document
	// consists of one line.
	Line int `json:"line,omitempty"`
	// Message describes the mistake.
	Message string `json:"message"`
	// Remedy describes the correction.
	Remedy string `json:"remedy,omitempty"`
	// ExitCode is a shell's exit code for a program that cannot be executed, and 0 for other
	// problems.
	ExitCode int `json:"-"`
}

// String formats the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	switch {
	case p.Remedy == "":
	case strings.HasSuffix(p.Message, "."):
		b.WriteString(" " + strings.ToUpper(p.Remedy[:1]) + p.Remedy[1:] + ".")
	default:
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// InvalidSpecError reports a refused spec, with all its problems. [Decode], [DecodeYAML] and
// [RunSpec.Validate] return it.
type InvalidSpecError struct {
	Problems []Problem `json:"problems"`
	// More is the number of problems omitted from a very long list.
	More int `json:"more,omitempty"`
}

// Error lists all problems. A single problem is on the first line; several are on a line each.
func (e *InvalidSpecError) Error() string {
	if e.ExitCode() == exitcode.Usage {
		return listProblems("invalid run spec", e.Problems, e.More)
	}
	if len(e.Problems) == 1 { // the message contains the program's name
		p := e.Problems[0]
		p.Path = ""
		return p.String()
	}
	return listProblems("programs cannot be executed", e.Problems, e.More)
}

// ExitCode returns the run's exit code. If all problems are programs that cannot be executed, it is
// the exit code that a shell would return; otherwise it is 2.
func (e *InvalidSpecError) ExitCode() int {
	for _, p := range e.Problems {
		if p.ExitCode == 0 {
			return exitcode.Usage
		}
	}
	if len(e.Problems) == 0 {
		return exitcode.Usage
	}
	return e.Problems[0].ExitCode
}

// InvalidRequestError reports a refused operator request.
type InvalidRequestError struct {
	Problems []Problem `json:"problems"`
	// More is the number of problems omitted from a very long list.
	More int `json:"more,omitempty"`
}

// Error lists all problems. A single problem is on the first line; several are on a line each.
func (e *InvalidRequestError) Error() string {
	return listProblems("invalid request", e.Problems, e.More)
}

func listProblems(title string, problems []Problem, more int) string {
	if len(problems) == 1 && more == 0 {
		return title + ": " + problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d problems:", title, len(problems)+more)
	for _, p := range problems {
		b.WriteString("\n  " + p.String())
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}

// maxProblems limits the list, because a mistake may be repeated a hundred thousand times, and the
// list is part of a workflow's failure.
const maxProblems = 100

// checker collects a spec's or request's problems, and fills specs from documents. Functions that
// check rules report to it.
type checker struct {
	problems []Problem
	more     int
	// malformed contains the unreadable paths. Their values are missing from the spec, and the
	// rules must not report them a second time.
	malformed map[string]bool
	// document is the document's type; nil means a spec.
	document reflect.Type
	// lines maps paths to lines in a multi-line document.
	lines map[string]int
	// textOfAny reports whether a number or a boolean is accepted instead of a string.
	textOfAny bool
}

// add reports a broken rule.
func (c *checker) add(path, message, remedy string) {
	if c.isMalformed(path) {
		return
	}
	c.note(Problem{Path: path, Message: message, Remedy: remedy})
}

// addError reports an error from this package's parsers.
func (c *checker) addError(path string, err error) {
	if v, ok := errors.AsType[valueError](err); ok {
		c.add(path, v.message, v.remedy)
	} else if err != nil {
		c.add(path, err.Error(), "")
	}
}

// malform reports a part of the document that does not fit the types.
func (c *checker) malform(path string, line int, message, remedy string) {
	c.malformed = setKey(c.malformed, path)
	c.note(Problem{Path: path, Line: line, Message: message, Remedy: remedy})
}

func (c *checker) note(p Problem) {
	if len(c.problems) == maxProblems {
		c.more++
		return
	}
	switch {
	case c.lines == nil:
		p.Line = 0
	case p.Line == 0:
		p.Line = c.lineOf(p.Path)
	}
	p.Message, p.Remedy = printable(p.Message), printable(p.Remedy)
	c.problems = append(c.problems, p)
}

// isMalformed reports whether path or one of its parents could not be read.
func (c *checker) isMalformed(path string) bool {
	if len(c.malformed) == 0 {
		return false
	}
	for p := path; p != ""; p = parentPath(p) {
		if c.malformed[p] {
			return true
		}
	}
	return false
}

func setKey(set map[string]bool, key string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[key] = true
	return set
}

func (c *checker) lineOf(path string) int {
	if len(c.lines) == 0 {
		return 0
	}
	for p := path; p != ""; p = parentPath(p) {
		if line := c.lines[p]; line > 0 {
			return line
		}
	}
	return 0
}

// specError returns an error with all problems, in document order, or nil.
func (c *checker) specError() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &InvalidSpecError{Problems: c.sorted(), More: c.more}
}

// sorted returns the problems in document order.
func (c *checker) sorted() []Problem {
	// Problems about missing fields, which have line 0, come last.
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return cmp.Compare(uint(a.Line)-1, uint(b.Line)-1)
	})
	return c.problems
}

func (c *checker) requestError() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &InvalidRequestError{Problems: c.problems, More: c.more}
}

// parentPath removes the path's last step. A name that contains dots takes several calls to remove,
// which is harmless because paths are only looked up.
func parentPath(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

func fieldPath(parent, name string) string {
	if !plainName(name) {
		name = Quote(name)
	}
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func indexPath(parent string, i int) string { return parent + "[" + strconv.Itoa(i) + "]" }

func plainName(name string) bool {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxQuoted
}

// maxQuoted limits the bytes of a value that a message repeats. A value may be a megabyte.
const maxQuoted = 60

// Quote formats a value for a message: in quotes, on one line, truncated if long.
func Quote(text string) string { return strconv.Quote(cut(text)) }

func cut(text string) string { return shorten.Text(text, maxQuoted+len("…")) }

// orList joins words: "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// printable makes a message safe for terminals and payloads by replacing control characters and
// invalid UTF-8.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// valueError describes a mistake in a single value, and the remedy.
type valueError struct{ message, remedy string }

func (e valueError) Error() string { return e.message + "; " + e.remedy }

// Checker collects problems in a request that another package defines. It applies the same checks
// as this package's requests.
type Checker struct{ c checker }

// Add reports a broken rule.
func (c *Checker) Add(path, message, remedy string) { c.c.add(path, message, remedy) }

// TaskName reports a string that is not a task's name.
func (c *Checker) TaskName(path, name string) { checkTaskName(&c.c, path, name) }

// Full reports whether the list is full, so that further problems are only counted.
func (c *Checker) Full() bool { return len(c.c.problems) >= maxProblems }

// Err returns an [*InvalidRequestError] with all problems, or nil.
func (c *Checker) Err() error { return c.c.requestError() }

// Nearest returns the known name that was probably meant, or "". It ignores case, hyphens and
// underscores, so that maxRestarts matches max_restarts.
func Nearest(name string, known []string) string {
	a := foldName(name)
	if a == "" || len(a) > 2*maxQuoted {
		return ""
	}
	best, bestDistance := "", max(1, len(a)/3)+1
	for _, k := range known {
		if d := editDistance(a, foldName(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func foldName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// editDistance returns the number of letters that must be inserted, deleted, replaced or swapped
// with a neighbor to turn a into b.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
