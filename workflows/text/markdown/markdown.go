// Package markdown escapes text from users and their programs for the summaries and details of
// workflows and activities, which Temporal's Web UI interprets as Markdown. Without it, a traceback
// loses its <module> and the underscores of its __init__, and text that looks like a table, a link
// or an image becomes one.
//
// The package is pure, so workflow code can call it.
package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName limits one of several names in a summary, since servers accept 400 bytes.
const maxName = 100

// Block returns text as a fenced block, on separate lines and no longer than most bytes. Nothing
// in the text can end the block.
func Block(text string, most int) string {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	text = cut(visible(text, "\n\t"), most-len("\n\n\n\n"))
	// The fence must be longer than any sequence of backticks in the text.
	fence := strings.Repeat("`", max(3, longest(text)+1))
	for len(text)+2*len(fence)+len("\n\n\n\n") > most && text != "" {
		text = cut(text, len(text)/2)
		fence = strings.Repeat("`", max(3, longest(text)+1))
	}
	return "\n" + fence + "\n" + text + "\n" + fence + "\n"
}

// Inline returns a line of text formatted as code or, if Markdown does not interpret it, unchanged.
// The code's content is no longer than most bytes even when encoded as JSON.
func Inline(text string, most int) string {
	text = visible(text, "")
	if longest(text) > 3 {
		text = strings.ReplaceAll(text, "`", "ˋ") // the marks would be as long
	}
	// The parser strips one space from each side of code, unless the code consists only of blanks.
	if strings.Trim(text, " ") == "" {
		text = strings.Repeat("␠", len(text))
	}
	text = cut(text, most)
	if isPlain(text) {
		return text
	}
	quote := strings.Repeat("`", longest(text)+1)
	if strings.ContainsAny(text[:1]+text[len(text)-1:], "` ") {
		text = " " + text + " "
	}
	return quote + text + quote
}

// Name is [Inline] for a name, such as the name of a host, in a summary or in details.
func Name(text string) string { return Inline(text, maxName) }

// Cell is [Name] for a table cell.
func Cell(text string) string { return Name(strings.ReplaceAll(text, "|", "¦")) }

// visible replaces characters that are invisible, or that change the order of their neighbors, by
// visible ones.
func visible(text, keep string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(keep, r):
			return r
		case r < ' ':
			return '␀' + r
		case r == 0x7f:
			return '␡'
		case r != ' ' && !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// isPlain reports whether Markdown leaves a string unchanged in any context. This is true only of
// ordinary names.
func isPlain(text string) bool {
	text = strings.ReplaceAll(text, ", ", " ")
	isWord := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' && text[i] <= 'Z' || text[i] >= '0' && text[i] <= '9')
	}
	for i := range len(text) {
		if isWord(i) {
			continue
		}
		if strings.IndexByte("-_= ", text[i]) < 0 || !isWord(i-1) || !isWord(i+1) {
			return false
		}
	}
	return true
}

// longest returns the length of the longest backtick run.
func longest(text string) int {
	most, n := 0, 0
	for i := range len(text) {
		if n++; text[i] != '`' {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

// cut truncates text that is too long as JSON.
func cut(text string, most int) string {
	size, end := 0, 0
	for i, r := range text {
		size += cost(r)
		if size > most {
			return text[:end] + "…"
		}
		if size <= most-len("…") {
			end = i + utf8.RuneLen(r)
		}
	}
	return text
}

// cost returns how many bytes a character takes as JSON.
func cost(r rune) int {
	switch r {
	case '<', '>', '&':
		return len(`\u003c`)
	case '"', '\\', '\n', '\t':
		return 2
	}
	return utf8.RuneLen(r)
}
