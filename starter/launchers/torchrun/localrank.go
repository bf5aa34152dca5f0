package torchrun

import (
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
)

// localRank matches the placeholders that torchrun replaces in arguments, like Python's
// string.Template.
var localRank = lazyregexp.New(`\$(\$|local_rank\b|\{local_rank\})`)

// WithLocalRank returns a command that replaces ${local_rank} in its arguments with its
// process's local rank. A shell does that, and then executes the program in its place.
func WithLocalRank(command []string) []string {
	has := func(arg string) bool {
		return slices.ContainsFunc(localRank().FindAllString(arg, -1), func(found string) bool { return found != "$$" })
	}
	if !slices.ContainsFunc(command[1:], has) {
		return command
	}
	words := []string{"exec", shellword.Of(command[0])}
	for _, arg := range command[1:] {
		if !has(arg) {
			words = append(words, shellword.Of(arg))
			continue
		}
		var word strings.Builder
		end := 0
		for _, at := range localRank().FindAllStringIndex(arg, -1) {
			word.WriteString(shellword.Of(arg[end:at[0]]))
			if arg[at[0]:at[1]] == "$$" {
				word.WriteString(`'$'`)
			} else {
				word.WriteString(`"$LOCAL_RANK"`)
			}
			end = at[1]
		}
		word.WriteString(shellword.Of(arg[end:]))
		words = append(words, word.String())
	}
	return []string{"/bin/sh", "-c", strings.Join(words, " ")}
}
