package command

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/help"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A command behaves the same whether it is built alone or with all commands.
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

// An unknown command of a group is a usage error, not a request for help.
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
	find([]string{}, root(cli.NewApp(nil, nil, io.Discard, io.Discard)))
	require.Contains(t, groups, []string{"host"})
	for _, group := range groups {
		var out, problem bytes.Buffer
		code := execute(append(slices.Clone(group), "frobnicate"), nil, &out, &problem)
		assert.Equal(t, exitcode.Usage, code, group)
		assert.Empty(t, out.String(), group)
		assert.Contains(t, problem.String(), `"frobnicate"`, group)

		if name := strings.Join(group, " "); name != "worker" && name != "dev" { // these run without a subcommand
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

// helpOf returns the lines of a command's help.
func helpOf(t *testing.T, command ...string) []string {
	t.Helper()
	var out, problem bytes.Buffer
	require.Zero(t, execute(append(command, "--help"), nil, &out, &problem), problem.String())
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// The root's help fits on a terminal without truncated descriptions.
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

// The help of run lists each flag once, under headings, common ones first. Commands that take
// these flags refer to it.
func TestHelpOfRun(t *testing.T) {
	lines := helpOf(t, "run")
	assert.Equal(t, "Flags that most runs need:", lines[5])
	text := strings.Join(lines, "\n")
	for _, heading := range []string{"Tasks", "Where", "Program", "Restarts and end", "Output", "GPUs, limits, sweeps", "Advanced"} {
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
	assert.Contains(t, submit, "It also accepts the flags of `clusterrun run`, except --fold,")
	assert.NotContains(t, submit, "--max-restarts")
}

// Package help describes each user command in a file, and every such file, and every part that
// they share, is used.
func TestFilesOfCommandHelp(t *testing.T) {
	dir := os.DirFS("../help")
	unused := map[string]bool{}
	var shared []string
	for _, pattern := range []string{"commands/*.txt", "commands/*/*.txt", "shared/*.txt"} {
		names := must.Get(fs.Glob(dir, pattern))(t)
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
			// Some groups do not need a description.
			assert.True(t, cmd.HasSubCommands() || cmd.Hidden, "%s is missing", path)
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
	check(root(cli.NewApp(nil, nil, io.Discard, io.Discard)))
	assert.Empty(t, unused, "these belong to no command")
}

// The help page and the error messages show the same command.
func TestTheTopicRegistersAllSearchAttributes(t *testing.T) {
	for _, name := range []string{"server"} {
		topic, found := help.Find(name)
		require.True(t, found)
		assert.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(topic.Text, "\\\n", "")), " "), spec.RegisterAttributes(), name)
	}
}

// A name that is not UTF-8 would change on its way. It is refused, and no files are left under
// either name.
func TestNamesThatAreNotUTF8AreRefused(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "caf\xe9")
	require.NoError(t, os.Mkdir(bad, 0o755))
	good := t.TempDir()
	for _, c := range []struct {
		variable, cwd string
		args          []string
		want          string
	}{
		{"HOME", good, []string{"run", "--", "true"}, `the state directory "` + filepath.Dir(bad) + `/caf\xe9/.local/state/clusterrun" is not valid UTF-8`},
		{"XDG_STATE_HOME", good, []string{"run", "--", "true"}, `use another with --state-dir`},
		{"CLUSTERRUN_STATE_DIR", good, []string{"submit", "--", "true"}, `use another with --state-dir`},
		{"HOME", good, []string{"dev"}, `use another with --state-dir`},
		{"HOME", good, []string{"worker"}, `use another with --state-dir`},
		{"HOME", good, []string{"list"}, `use another with --state-dir`},
		{"", bad, []string{"run", "--", "true"}, `the current directory "` + filepath.Dir(bad) + `/caf\xe9" is not valid UTF-8`},
		{"", bad, []string{"run", "--log-dir", "logs", "--", "true"}, `--log-dir: `},
		{"", bad, []string{"worker", "--log-dir", "logs"}, `--log-dir `},
		{"", good, []string{"run", "--state-dir", bad, "--", "true"}, `--state-dir `},
		{"", good, []string{"run", "--log-dir", bad, "--", "true"}, `--log-dir: `},
		{"", good, []string{"run", "--dir", bad, "--", "true"}, `--dir: `},
		{"", good, []string{"run", "--env", "A=caf\xe9", "--", "true"}, `env.A: `},
		{"", good, []string{"run", "--", "echo", "caf\xe9"}, `command[1]: `},
		{"", good, []string{"submit", "--queue", "caf\xe9", "--", "true"}, `--queue "caf\xe9" is not valid UTF-8`},
		{"", good, []string{"worker", "--host-name", "caf\xe9"}, `--host-name "caf\xe9" is not valid UTF-8`},
		{"", good, []string{"worker", "--log-dir", bad}, `--log-dir `},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{"TEMPORAL_ADDRESS", "XDG_STATE_HOME", "CLUSTERRUN_STATE_DIR"} {
				t.Setenv(name, "")
			}
			t.Setenv("CLUSTERRUN_DEVSERVER", "/does/not/exist")
			t.Setenv("HOME", good)
			if c.variable != "" {
				t.Setenv(c.variable, bad)
			}
			t.Chdir(c.cwd)
			var out, errs bytes.Buffer
			assert.Equal(t, exitcode.Usage, execute(c.args, nil, &out, &errs), "%q", c.args)
			assert.Contains(t, errs.String(), c.want)
			assert.Contains(t, errs.String(), "is not valid UTF-8")
			for _, dir := range []string{bad, good} {
				left, err := os.ReadDir(dir)
				assert.NoError(t, err)
				assert.Empty(t, left, "%q", c.args)
			}
		})
	}
}

// Programs within a run keep their shell's HOME, and do not need a state directory.
func TestTaskCommandsNeedNoStateDirectory(t *testing.T) {
	t.Setenv("HOME", "/caf\xe9")
	var out, errs bytes.Buffer
	assert.Zero(t, execute([]string{"validate", "--", "true"}, nil, &out, &errs), errs.String())
	assert.Zero(t, execute([]string{"version"}, nil, &out, &errs), errs.String())
	t.Setenv("CLUSTERRUN_SOCKET", "")
	execute([]string{"task", "info"}, nil, &out, &errs)
	assert.NotContains(t, errs.String(), "UTF-8")
}
