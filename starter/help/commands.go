package help

import (
	"embed"
	"strings"
)

//go:embed commands shared
var commandFiles embed.FS

// examplesHeading separates the description of a command from its examples.
const examplesHeading = "\nExamples:\n"

// Command returns the description and the examples of a command. Those of `server env` are in
// commands/server/env.txt, where {{NAME}} stands for the file shared/NAME.txt, and
// {{generated}} for what the program makes. Both are empty if there is no such file.
func Command(name, generated string) (about, examples string) {
	text, err := commandFiles.ReadFile("commands/" + strings.ReplaceAll(name, " ", "/") + ".txt")
	if err != nil {
		return "", ""
	}
	about, examples, _ = strings.Cut(string(text), examplesHeading)
	return strings.TrimSpace(expand(about, generated)), strings.TrimSuffix(examples, "\n")
}

// expand replaces the marks of a text.
func expand(text, generated string) string {
	before, rest, found := strings.Cut(text, "{{")
	if !found {
		return text
	}
	name, after, _ := strings.Cut(rest, "}}")
	part := generated
	if name != "generated" {
		shared, err := commandFiles.ReadFile("shared/" + name + ".txt")
		if err != nil {
			panic(err) // it is part of the program
		}
		part = string(shared)
	}
	return before + strings.TrimSuffix(part, "\n") + expand(after, generated)
}
