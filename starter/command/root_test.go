package command

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// A command that is built without the others behaves as it does among them.
func TestCommandsThatAreOftenExecuted(t *testing.T) {
	a := cli.NewApp(nil, nil, io.Discard, io.Discard)
	say := func(root *cobra.Command, args ...string) (said string, err error) {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		err = root.Execute()
		return out.String(), err
	}
	for name := range oftenExecuted(a) {
		for _, flag := range []string{"--help", "--no-such-flag"} {
			whole, wanted := say(root(a), name, flag)
			alone, err := say(rootFor(a, []string{name}), name, flag)
			require.Equal(t, wanted, err, name)
			assert.Equal(t, whole, alone, name)
		}
		whole, _, err := root(a).Find([]string{name})
		require.NoError(t, err)
		assert.Equal(t, name, whole.Name())
		assert.Less(t, len(rootFor(a, []string{name}).Commands()), 3, "others are not built")
	}
}

// An unknown command of a group is a usage error, instead of a request for its help.
func TestUnknownCommandsOfGroups(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var groups [][]string
	var find func(path []string, cmd *cobra.Command)
	find = func(path []string, cmd *cobra.Command) {
		if cmd.HasSubCommands() {
			groups = append(groups, path)
		}
		for _, c := range cmd.Commands() {
			find(append(slices.Clone(path), c.Name()), c)
		}
	}
	find([]string{}, Commands(io.Discard))
	require.Contains(t, groups, []string{"completion"})
	groups = slices.DeleteFunc(groups, func(path []string) bool { return slices.Equal(path, []string{"call"}) }) // what follows is a run
	for _, group := range groups {
		var out, problem bytes.Buffer
		code := execute(append(slices.Clone(group), "frobnicate"), nil, &out, &problem)
		assert.Equal(t, exitcode.Usage, code, group)
		assert.Empty(t, out.String(), group)
		assert.Contains(t, problem.String(), `"frobnicate"`, group)

		if name := strings.Join(group, " "); name != "worker" { // it runs without a subcommand
			assert.Contains(t, problem.String(), "there is no command", group)
			code = execute(group, nil, &out, &problem)
			assert.Equal(t, exitcode.OK, code, group)
			want := "Usage: clusterrun COMMAND"
			if name != "" {
				want = "  clusterrun " + name + " [command]\n"
			}
			assert.Contains(t, out.String(), want, group)
		}
	}
}
