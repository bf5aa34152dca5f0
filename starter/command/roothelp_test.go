package command

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// helpOf returns the lines of the help of a command.
func helpOf(t *testing.T, command ...string) []string {
	t.Helper()
	var out, problem bytes.Buffer
	require.Zero(t, execute(append(command, "--help"), nil, &out, &problem), problem.String())
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// The help of the root fits on a terminal and cuts no description off.
func TestRootHelpFitsOnOneScreen(t *testing.T) {
	lines := helpOf(t)
	assert.LessOrEqual(t, len(lines), 50)
	for _, l := range lines {
		assert.LessOrEqual(t, len(l), 80, l)
		assert.NotContains(t, l, "…")
	}
	for _, word := range []string{"torchrun --nproc-per-node", "-H a:8,b:8", "clusterrun help flags"} {
		assert.Contains(t, strings.Join(lines, "\n"), word)
	}
}

// The help of run has each flag once, the common ones first, under headings. Commands that take
// these flags refer to it.
func TestHelpOfRun(t *testing.T) {
	lines := helpOf(t, "run")
	assert.Equal(t, "Flags that most runs need:", lines[5])
	text := strings.Join(lines, "\n")
	for _, heading := range []string{"Tasks", "Where", "Program", "Restarts and end", "Output", "GPUs and limits", "Elastic", "Signing", "Advanced"} {
		assert.Contains(t, text, "\n"+heading+":\n")
	}
	run, _, err := root(cli.NewApp(nil, nil, nil, nil)).Find([]string{"run"})
	require.NoError(t, err)
	run.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			listed := regexp.MustCompile("(?m)^  (-., |    )--" + f.Name + "( |$)")
			assert.Len(t, listed.FindAllString(text, -1), 1, f.Name)
		}
	})
	submit := strings.Join(helpOf(t, "submit"), "\n")
	assert.Contains(t, submit, "It takes the flags of `clusterrun run` as well, except --copy-binary,")
	assert.NotContains(t, submit, "--max-restarts")
}
