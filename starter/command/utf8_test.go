package command

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

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
		{"XDG_STATE_HOME", good, []string{"run", "--", "true"}, `give another with --state-dir`},
		{"CLUSTERRUN_STATE_DIR", good, []string{"submit", "--", "true"}, `give another with --state-dir`},
		{"HOME", good, []string{"dev"}, `give another with --state-dir`},
		{"HOME", good, []string{"worker"}, `give another with --state-dir`},
		{"HOME", good, []string{"list"}, `give another with --state-dir`},
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

// Programs within a run have the HOME of their shell, and need no state directory.
func TestTaskCommandsNeedNoStateDirectory(t *testing.T) {
	t.Setenv("HOME", "/caf\xe9")
	var out, errs bytes.Buffer
	assert.Zero(t, execute([]string{"validate", "--", "true"}, nil, &out, &errs), errs.String())
	assert.Zero(t, execute([]string{"version"}, nil, &out, &errs), errs.String())
	t.Setenv("CLUSTERRUN_SOCKET", "")
	execute([]string{"task", "info"}, nil, &out, &errs)
	assert.NotContains(t, errs.String(), "UTF-8")
}
