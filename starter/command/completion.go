package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// addCompletion adds Cobra's completion command to root. Cobra's script for bash calls a
// function of the bash-completion package, which many containers lack; [bashWords] works
// without it.
func addCompletion(a *cli.App, root *cobra.Command) {
	root.SetOut(a.Out) // Cobra writes its scripts there
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cli.AsGroup(completion)
	completion.Short, completion.Long = "Print a script that completes commands in a shell", ""
	for _, c := range completion.Commands() {
		c.Short = "Print the script for " + c.Name()
		if c.Name() != "bash" {
			continue
		}
		c.Long = "" // Cobra's needs that package
		print := c.RunE
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if err := print(cmd, args); err != nil {
				return err
			}
			_, err := io.WriteString(a.Out, bashWords)
			return err
		}
	}
}

// bashWords replaces the function with which Cobra's script finds the words before the cursor.
// Bash's own COMP_WORDS has "=" and ":" as separate words.
const bashWords = `
# For shells without the bash-completion package.
__clusterrun_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local before=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$before"
    if [[ $before == *[[:space:]] ]]; then
        words+=("")
    fi
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword - 1]}
}
`
