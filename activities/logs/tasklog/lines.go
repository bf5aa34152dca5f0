package tasklog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// LastLines returns the last n lines of a file, up to maxBytes, as readable text, which is valid
// UTF-8 without control characters or trailing empty lines. It reads only the end of the file. If a
// single line is too long, its middle is omitted. If the file cannot be read, LastLines returns "".
func LastLines(path string, n, maxBytes int) string {
	// overhead allows for text that Printable removes.
	const overhead = 4
	text, whole := tailOf(path, int64(overhead*maxBytes))
	if !whole {
		// The first line is probably incomplete. It is used only if there is no other.
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok && len(bytes.TrimSpace(rest)) > 0 {
			text = rest
		}
	}
	lines := SplitLines(strings.TrimRight(Printable(text), "\n\t "))
	lines = lines[max(0, len(lines)-n):]
	left := maxBytes
	for i := len(lines) - 1; i >= 0; i-- {
		if left -= len(lines[i]); left < 0 {
			if i < len(lines)-1 {
				lines = lines[i+1:]
			} else {
				// An error is usually described at the start of the line, and its location at the
				// end.
				lines = []string{shorten.Middle(lines[i], maxBytes, " … ")}
			}
			break
		}
		left-- // the newline
	}
	return strings.Join(lines, "\n")
}

// SplitLines splits text into lines. For empty text it returns nil.
func SplitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// tailOf reads the last bytes of a regular file. It reports whether these are the whole file.
func tailOf(path string, size int64) (text []byte, whole bool) {
	f, info, err := openRegular(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, true
	}
	defer f.Close()
	from := max(0, info.Size()-size)
	text = make([]byte, info.Size()-from)
	n, _ := f.ReadAt(text, from) // it may have been truncated since
	return text[:n], from == 0
}

// openRegular opens a regular file, as [openToRead] does.
func openRegular(path string, flag int, mode fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

var errNotRegular = errors.New("is not a file")

// openToRead opens a file that an unknown program may have replaced, for example with a FIFO, which
// would block open, or with a link to another user's file.
func openToRead(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// escape matches terminal control sequences: CSI, OSC, and short ones.
var escape = lazyregexp.New("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(\x07|\x1b\\\\)?|[ -/]*[0-~])")

// Printable returns approximately what a terminal would show for a program's output.
func Printable(b []byte) string {
	text := escape().ReplaceAllString(string(bytes.ToValidUTF8(b, []byte("\uFFFD"))), "")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		// A progress bar overwrites itself.
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		lines[i] = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\t' {
				return -1
			}
			return r
		}, line)
	}
	return strings.Join(lines, "\n")
}
