package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Completion returns the command that prints a shell's script.
func Completion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a shell completion script",
		Args:      cli.OneArg("SHELL"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				if err := root.GenBashCompletionV2(a.Out, true); err != nil {
					return err
				}
				_, err := io.WriteString(a.Out, bashWords)
				return err
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			}
			return cli.Usagef("SHELL %q: use bash, zsh or fish", args[0])
		},
	}
}

// bashWords replaces a function of Cobra's script that finds the words before the cursor,
// because it depends on the bash-completion package, which many containers lack. Bash's own
// COMP_WORDS treats "=" and ":" as separate words.
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
