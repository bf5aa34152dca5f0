package command

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Each command that users execute has a file with its description in package help, and each such
// file, and each part that they share, is used.
func TestFilesOfCommandHelp(t *testing.T) {
	dir := os.DirFS("../help")
	unused := map[string]bool{}
	var shared []string
	for _, pattern := range []string{"commands/*.txt", "commands/*/*.txt", "shared/*.txt"} {
		names, err := fs.Glob(dir, pattern)
		require.NoError(t, err)
		for _, name := range names {
			unused[name] = true
			if part, ok := strings.CutPrefix(name, "shared/"); ok {
				shared = append(shared, part)
			}
		}
	}
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			check(c)
		}
		path := "commands/" + strings.Join(strings.Fields(cmd.CommandPath())[1:], "/") + ".txt"
		text, err := fs.ReadFile(dir, path)
		if err != nil {
			// Cobra describes how each shell uses its script, and some groups need no description.
			byCobra := cmd.HasParent() && cmd.Parent().Name() == "completion"
			assert.True(t, byCobra || cmd.HasSubCommands() || cmd.Hidden, "%s is missing", path)
			return
		}
		delete(unused, path)
		about, examples := cli.Described(cmd)
		assert.NotContains(t, about+examples, "{{", path)
		assert.Equal(t, cmd.Long != "", strings.Contains(string(text), "{{generated}}"), path)
		for _, part := range shared {
			if strings.Contains(string(text), "{{"+strings.TrimSuffix(part, ".txt")+"}}") {
				delete(unused, "shared/"+part)
			}
		}
	}
	check(Commands(io.Discard))
	assert.Empty(t, unused, "these belong to no command")
}
