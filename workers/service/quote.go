package service

import (
	"fmt"
	"strings"
)

// command quotes a command for ExecStart: see systemd.service(5), "Command lines". systemd
// expands variables in all words but the program, so $ is escaped in args.
func command(program string, args ...string) string {
	line := quote(value(program))
	for _, arg := range args {
		line += " " + strings.ReplaceAll(quote(value(arg)), "$", "$$")
	}
	return line
}

// value escapes a text in which % must not begin a specifier of systemd.
func value(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// plain are the characters that need no quotes in a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+%$@"

func quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(word) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
