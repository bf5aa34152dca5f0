package evidence

import (
	"bytes"
	"cmp"
	"path"
	"strconv"
	"strings"
)

// maxBlock limits an error's lines, to terminate blocks without an end.
const maxBlock = 5000

// pythonBlock reads a traceback's frames and the exception's line.
func pythonBlock(f *Finding, s *blockState, line []byte) bool {
	if s.ended || s.lines > maxBlock {
		return false
	}
	start := bytes.TrimLeft(line, " |")
	switch {
	case len(start) == 0 || bytes.HasPrefix(start, []byte("+-")):
		return len(line) > 0
	case bytes.HasPrefix(start, []byte(`File "`)):
		s.pythonFrame(string(start))
		return true
	case line[0] == ' ' && (len(line) < 4 || line[2] != '|' || line[4-1] != ' ' || len(line) > 4 && line[4] == ' '):
		return true // a source line
	}
	if !isException(start) {
		return false
	}
	f.Line, s.ended = text(start), true
	if strings.Contains(f.Line, "OutOfMemoryError") || strings.HasPrefix(f.Line, "MemoryError") || strings.Contains(f.Line, "CUDA out of memory") {
		f.Kind = kindMemory
	}
	return true
}

// pythonFrame keeps the place of the deepest frame in the program or, if there is none, of the
// deepest frame.
func (s *blockState) pythonFrame(frame string) {
	file, rest, ok := strings.Cut(strings.TrimPrefix(frame, `File "`), `", line `)
	if !ok {
		return
	}
	number, _, _ := strings.Cut(rest, ",")
	number, _, _ = strings.Cut(number, " ")
	if _, err := strconv.Atoi(number); err != nil {
		return
	}
	own := !strings.Contains(file, "-packages/") && !strings.Contains(file, "/lib/python") && !strings.HasPrefix(file, "<frozen")
	if own || !s.own {
		s.frame, s.own = path.Base(file)+":"+number, own
	}
}

// isException reports whether a line starts with an exception's name, like the last line of a
// traceback. The name is Name or package.Name, followed by a colon or the end of the line.
func isException(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte(":"))
	if len(name) == 0 || len(name) > 160 {
		return false
	}
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '<', c == '>':
		default:
			return false
		}
	}
	return true
}

// cppBlock reads the message of the exception that caused std::terminate.
func cppBlock(f *Finding, s *blockState, line []byte) bool {
	what, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "what():")
	if !ok || s.lines > 1 {
		return false
	}
	name := f.Line
	if _, quoted, ok := strings.Cut(name, "instance of '"); ok {
		name, _, _ = strings.Cut(quoted, "'")
	}
	f.Line = bounded(name+": "+text([]byte(what)), maxText)
	return true
}

// goBlock reads the goroutines after a panic.
func goBlock(f *Finding, s *blockState, line []byte) bool {
	switch {
	case s.lines > maxBlock:
		return false
	case len(line) == 0:
		return true
	case bytes.HasPrefix(line, []byte("\tpanic: ")), bytes.HasPrefix(line, []byte("[signal ")), bytes.HasPrefix(line, []byte("goroutine ")), bytes.HasPrefix(line, []byte("created by ")):
		return true
	case line[0] == '\t':
		if place := placeIn(strings.TrimSpace(string(line)), ".go:"); place != "" && f.Place == "" && !bytes.Contains(line, []byte("/src/runtime/")) {
			f.Place = place
		}
		return true
	}
	return bytes.HasSuffix(line, []byte(")")) || bytes.HasPrefix(line, []byte("...")) || bytes.HasPrefix(line, []byte("exit status "))
}

// javaBlock reads a stack trace. The last cause counts as the error.
func javaBlock(f *Finding, s *blockState, line []byte) bool {
	start := strings.TrimSpace(string(line))
	switch {
	case s.lines > maxBlock:
		return false
	case s.lines == 1:
		// `Exception in thread "main" java.lang.Error: text` is the line before.
		if _, rest, ok := strings.Cut(strings.TrimPrefix(f.Line, `Exception in thread "`), `" `); ok {
			f.Line = rest
		}
		// Errors in Python's threads start in the same way.
		if strings.HasPrefix(start, "Traceback (most recent call last):") {
			f.Kind = kindPython
			return true
		}
	}
	if f.Kind == kindPython {
		s.lines++
		return pythonBlock(f, s, line)
	}
	switch {
	case strings.HasPrefix(start, "at "):
		if place := placeIn(start, ".java:"); place != "" && f.Place == "" {
			f.Place = place
		}
		return true
	case strings.HasPrefix(start, "... "):
		return true
	case strings.HasPrefix(start, "Caused by: "):
		f.LostPeer = f.LostPeer || SpeaksOfPeer(start)
		f.Line, f.Place = bounded(strings.TrimPrefix(start, "Caused by: "), maxText), ""
		return true
	case strings.HasPrefix(start, "Suppressed: "):
		return true
	}
	return false
}

// rustBlock reads a panic's message, which follows the place.
func rustBlock(f *Finding, s *blockState, line []byte) bool {
	if s.lines > 1 {
		return bytes.HasPrefix(line, []byte("note: ")) || bytes.HasPrefix(line, []byte("stack backtrace:")) || bytes.HasPrefix(line, []byte("   "))
	}
	_, where, _ := strings.Cut(f.Line, "panicked at ")
	if strings.HasPrefix(where, "'") { // before Rust 1.73: 'message', file:line:column
		message, place, _ := strings.Cut(where[1:], "', ")
		f.Line, f.Place = "panicked: "+message, lineOf(place)
		return bytes.HasPrefix(line, []byte("note: "))
	}
	f.Place = lineOf(strings.TrimSuffix(where, ":"))
	f.Line = bounded("panicked at "+f.Place+": "+text(line), maxText)
	return true
}

// fortranBlock reads the error, which follows a place such as "At line 12 of file a.f90".
func fortranBlock(f *Finding, s *blockState, line []byte) bool {
	if s.lines > 1 {
		return bytes.HasPrefix(line, []byte("Error termination")) || bytes.HasPrefix(line, []byte("#"))
	}
	if _, rest, ok := strings.Cut(f.Line, "At line "); ok {
		number, rest, _ := strings.Cut(rest, " of file ")
		file, _, _ := strings.Cut(rest, " ")
		f.Place = bounded(path.Base(file)+":"+number, maxPlace)
	}
	if start := bytes.TrimSpace(line); bytes.HasPrefix(start, []byte("Fortran runtime ")) {
		f.Line = text(start)
		return true
	}
	return false
}

// sanitizerBlock reads a report up to its summary.
func sanitizerBlock(f *Finding, s *blockState, line []byte) bool {
	start := strings.TrimSpace(string(line))
	if s.lines == 1 {
		if _, rest, ok := strings.Cut(f.Line, "Sanitizer: "); ok {
			at := strings.Index(f.Line, "Sanitizer: ")
			name := f.Line[strings.LastIndexByte(f.Line[:at], ' ')+1 : at]
			f.Line = bounded(name+"Sanitizer: "+rest, maxText)
		}
	}
	switch {
	case s.ended || s.lines > maxBlock:
		return strings.HasPrefix(start, "==") && strings.HasSuffix(start, "ABORTING")
	case strings.HasPrefix(start, "SUMMARY: "):
		s.ended = true
		return true
	case strings.HasPrefix(start, "#") && f.Place == "":
		for _, field := range strings.Fields(start) {
			f.Place = cmp.Or(f.Place, lineOf(field))
		}
	}
	return true
}

// assertionPlace returns the place in a failed assertion such as "prog: file.c:12: main: Assertion
// …".
func assertionPlace(line string) string {
	before, _, ok := strings.Cut(line, ": Assertion")
	if !ok {
		return ""
	}
	parts := strings.Split(before, ":")
	for i := range parts {
		if _, err := strconv.Atoi(parts[i]); err == nil && i > 0 {
			return bounded(path.Base(strings.TrimSpace(parts[i-1]))+":"+parts[i], maxPlace)
		}
	}
	return ""
}

// lineOf returns the base name and line of "dir/file:line:column".
func lineOf(place string) string {
	parts := strings.Split(place, ":")
	if len(parts) < 2 {
		return ""
	}
	if _, err := strconv.Atoi(parts[1]); err != nil {
		return ""
	}
	return bounded(path.Base(parts[0])+":"+parts[1], maxPlace)
}

// placeIn returns the place in a line with a suffix such as ".go:".
func placeIn(line, suffix string) string {
	at := strings.Index(line, suffix)
	if at < 0 {
		return ""
	}
	end := at + len(suffix)
	for end < len(line) && line[end] >= '0' && line[end] <= '9' {
		end++
	}
	start := strings.LastIndexAny(line[:at], "/( ") + 1
	return bounded(line[start:end], maxPlace)
}
