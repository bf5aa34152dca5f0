// Package shellword writes words for a POSIX shell.
package shellword

import "strings"

// plain are the characters that have no meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"

// Of returns a text as a word of a shell, in quotes only if it needs them.
func Of(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Join returns the words of a command as a line for a shell.
func Join(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = Of(w)
	}
	return strings.Join(line, " ")
}
