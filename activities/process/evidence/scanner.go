package evidence

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

const (
	// maxLine is how many bytes of a line are examined.
	maxLine = 1024
	// maxText limits [Finding.Line], and maxPlace [Finding.Place], in bytes.
	maxText  = 240
	maxPlace = 120
	// maxFindings limits a stream's findings. The oldest are dropped.
	maxFindings = 64
)

// Finding is an error that a process printed.
type Finding struct {
	// Kind is the kind of error, such as "python".
	Kind string
	// Line is the error in one line, such as "ValueError: shard 3 is corrupt".
	Line string
	// Place is where the error occurred, such as "train.py:88", or empty if unknown.
	Place string
	// LostPeer reports whether the error mentions another process's exit.
	LostPeer bool
	// Survived reports whether programs usually continue after such an error, because it was logged
	// or is a warning.
	Survived bool
	// Start and End are the error's byte offsets in the stream.
	Start, End int64
	// Rest is the number of lines after the error in the stream.
	Rest int
}

// Scanner finds errors in a stream's lines.
type Scanner struct {
	found []Finding
	lines int
	// open is the error being read, or nil.
	open *Finding
	then block
	// chained reports whether a following Python traceback belongs to the last finding.
	chained bool
	// before is the last non-empty line outside an error.
	before string
	state  blockState
	// stems are the [stems] possible in the lines, or nil if unknown.
	stems []string
}

// Scan returns the errors in the last part of a stream, which starts with the line at offset.
func Scan(part []byte, offset int64) []Finding {
	s := Scanner{stems: make([]string, 0, len(stems))}
	for _, stem := range stems {
		if bytes.Contains(part, []byte(stem)) {
			s.stems = append(s.stems, stem)
		}
	}
	for line := range bytes.Lines(part) {
		s.Line(line, offset)
		offset += int64(len(line))
	}
	return s.Findings()
}

// A block reads a line after an error's first, and reports whether it belongs to the error.
type block func(f *Finding, s *blockState, line []byte) bool

// blockState is a block's state between lines.
type blockState struct {
	lines int
	ended bool
	frame string // the last place seen
	own   bool   // frame is in the program, not in a library
}

// Line reads the next line, with or without its newline, at offset in the stream.
func (s *Scanner) Line(line []byte, offset int64) {
	s.lines++
	end := offset + int64(len(line))
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	line = withoutRank(line)
	if s.open != nil {
		s.state.lines++
		if s.then(s.open, &s.state, line) {
			s.open.End = end
			s.open.Rest = -s.lines
			return
		}
		s.close()
	}
	if len(line) == 0 {
		return
	}
	if s.begin(line, offset, end) {
		return
	}
	if bytes.HasPrefix(line, []byte("During handling of the above exception")) || bytes.HasPrefix(line, []byte("The above exception was the direct cause")) {
		s.chained = len(s.found) > 0
		return
	}
	s.chained = false
	s.before = string(line)
}

// begin reports whether the line starts an error and, if so, records it.
func (s *Scanner) begin(line []byte, offset, end int64) bool {
	r, ok := s.ruleOf(line)
	if !ok {
		return false
	}
	f := Finding{
		Kind: r.kind, Line: text(line), Survived: r.survived, Start: offset, End: end,
		Rest: -s.lines, LostPeer: SpeaksOfPeer(string(line)),
	}
	if r.kind == kindPeer {
		f.Survived = true
	}
	if r.kind == kindLibc {
		f.Place = assertionPlace(f.Line)
	}
	if r.then == nil {
		s.keep(f)
		s.before = ""
		return true
	}
	if r.kind == kindPython || r.kind == kindJava {
		f.Survived = f.Survived || logged(s.before)
	}
	s.open, s.then, s.state = &f, r.then, blockState{}
	return true
}

// close completes the error being read.
func (s *Scanner) close() {
	f := *s.open
	s.open = nil
	f.Place = cmp.Or(f.Place, bounded(s.state.frame, maxPlace))
	f.LostPeer = f.LostPeer || SpeaksOfPeer(f.Line)
	chained := s.chained && f.Kind == kindPython
	s.chained, s.before = false, ""
	if strings.HasPrefix(f.Line, "KeyboardInterrupt") || f.Kind == kindRust && !strings.Contains(f.Line, "panicked at") && s.state.lines < 1 {
		return
	}
	if f.Line == "" {
		return
	}
	if chained && len(s.found) > 0 {
		// The chain is one error, starting with its first exception.
		first := &s.found[len(s.found)-1]
		first.LostPeer = first.LostPeer || f.LostPeer
		first.Line, first.Place, first.End, first.Rest = f.Line, f.Place, f.End, f.Rest
		return
	}
	s.keep(f)
}

func (s *Scanner) keep(f Finding) {
	if len(s.found) >= maxFindings {
		s.found = append(s.found[:0], s.found[1:]...)
	}
	s.found = append(s.found, f)
}

// Findings returns the errors found so far, in the order of the stream.
func (s *Scanner) Findings() []Finding {
	all := append([]Finding(nil), s.found...)
	if s.open != nil {
		t := *s
		t.found = append([]Finding(nil), s.found...)
		t.close()
		all = t.found
	}
	for i := range all {
		all[i].Rest += s.lines
	}
	return all
}

// ruleOf returns the rule that the start of an error matches.
func (s *Scanner) ruleOf(line []byte) (rule, bool) {
	start := bytes.TrimLeft(line, " |+-")
	if len(start) > 0 && firstBytes[start[0]] {
		for _, r := range prefixes {
			if strings.HasPrefix(string(start[:min(len(start), len(r.text))]), r.text) && r.fits(start) {
				return r, true
			}
		}
	}
	possible := s.stems
	if possible == nil {
		possible = stems
	}
	if !slices.ContainsFunc(possible, func(stem string) bool { return bytes.Contains(line, []byte(stem)) }) {
		return rule{}, false
	}
	for _, r := range insides {
		if bytes.Contains(line, []byte(r.text)) {
			return r, true
		}
	}
	if SpeaksOfPeer(string(line)) {
		return rule{kind: kindPeer}, true
	}
	return rule{}, false
}

// fits reports whether a line with the rule's prefix is an error. Some prefixes are common words.
func (r rule) fits(line []byte) bool {
	switch r.text {
	case "Killed", "Segmentation fault", "Bus error", "Illegal instruction", "Floating point exception", "Out Of Memory":
		rest := strings.TrimSpace(string(line[len(r.text):]))
		return rest == "" || rest == "(core dumped)" || strings.HasPrefix(rest, ":")
	case "thread '":
		return bytes.Contains(line, []byte("panicked at "))
	case "At line ":
		return bytes.Contains(line, []byte(" of file "))
	case "Exception in thread ":
		return true
	}
	return true
}

// firstBytes are the first bytes of prefixes.
var firstBytes = func() (first [256]bool) {
	for _, r := range prefixes {
		first[r.text[0]] = true
	}
	return first
}()

// SpeaksOfPeer reports whether an error message mentions that another process has exited or that
// the connection to it was lost.
func SpeaksOfPeer(text string) bool {
	lower := strings.ToLower(bounded(text, 8*maxLine))
	return slices.ContainsFunc(lostPeer, func(words string) bool { return strings.Contains(lower, words) })
}

func logged(before string) bool {
	return slices.ContainsFunc(loggedWords, func(word string) bool { return strings.Contains(before, word) })
}

// withoutRank removes torch's line prefix "[rank3]: ".
func withoutRank(line []byte) []byte {
	if !bytes.HasPrefix(line, []byte("[rank")) {
		return line
	}
	if i := bytes.Index(line[:min(len(line), 16)], []byte("]:")); i >= 0 {
		return bytes.TrimPrefix(line[i+2:], []byte(" "))
	}
	return line
}

// text returns a line as displayed: truncated, valid and without control characters.
func text(line []byte) string {
	s := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(line), "?"))
	return bounded(strings.TrimSpace(s), maxText)
}

func bounded(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
