// Package shellword quotes words for a POSIX shell.
package shellword

import "strings"

// plain are the characters without a meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"

// Of returns text as a shell word, quoted only if necessary.
func Of(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Join returns a command's words as a shell command line.
func Join(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = Of(w)
	}
	return strings.Join(line, " ")
}
