package taskenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// anything permits all secrets, as a host without a policy does.
var anything = (*policy.Policy)(nil).Decide(policy.Request{}).Secrets

func TestSecretFromTheEnvironment(t *testing.T) {
	base := []string{"HF_TOKEN=s3cret=", "EMPTY=", "TEMPORAL_API_KEY=key", "CLUSTERRUN_WORKER_OPTIONS=x"}
	for name, want := range map[string]string{"HF_TOKEN": "s3cret=", "EMPTY": ""} {
		value, problem := Secret(base, spec.Source{FromEnv: name}, anything)
		require.Nil(t, problem)
		assert.Equal(t, want, value)
	}
	for name, want := range map[string]string{
		"MISSING":                   "from_env: the host worker has no variable MISSING; start the host worker with it, or name another variable or a file",
		"TEMPORAL_API_KEY":          "from_env: TEMPORAL_API_KEY belongs to the host worker and is never passed to tasks; name another variable, or a file",
		"CLUSTERRUN_WORKER_OPTIONS": "from_env: CLUSTERRUN_WORKER_OPTIONS belongs to the host worker and is never passed to tasks; name another variable, or a file",
	} {
		value, problem := Secret(base, spec.Source{FromEnv: name}, anything)
		require.NotNil(t, problem, name)
		assert.Empty(t, value)
		assert.Equal(t, want, problem.String())
	}
}

func TestSecretFromAFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for content, want := range map[string]string{
		"s3cret": "s3cret", "s3cret\n": "s3cret", "s3cret\r\n": "s3cret", "two\nlines\n\n": "two\nlines\n", " spaced ": " spaced ",
	} {
		value, problem := Secret(nil, spec.Source{FromFile: file("good", content)}, anything)
		require.Nil(t, problem)
		assert.Equal(t, want, value)
	}
	link := filepath.Join(dir, "link") // as Kubernetes mounts them
	require.NoError(t, os.Symlink(file("target", "s3cret"), link))
	value, problem := Secret(nil, spec.Source{FromFile: link}, anything)
	require.Nil(t, problem)
	assert.Equal(t, "s3cret", value)

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		file("nul", "s3\x00cret"):                       "it has a NUL byte, which no variable can have",
		file("empty", "\n"):                             "it is empty",
		file("large", strings.Repeat("x", maxVariable)): "it has 131072 bytes or more; no variable can be that long",
		filepath.Join(dir, "missing"):                   "no such file or directory",
		dir:                                             "it is not a regular file",
		pipe:                                            "it is not a regular file",
		"/dev/zero":                                     "it is not a regular file",
		filepath.Join(file("plain", "s3cret"), "inside"): "not a directory",
	} {
		value, problem := Secret(nil, spec.Source{FromFile: path}, anything)
		require.NotNil(t, problem, path)
		assert.Empty(t, value)
		assert.Equal(t, "from_file", problem.Path)
		assert.Equal(t, path+": "+want, problem.Message)
	}
}

func TestSecretsThatThePolicyDoesNotLend(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	mine, theirs := filepath.Join(dir, "mine"), filepath.Join(elsewhere, "theirs")
	require.NoError(t, os.WriteFile(mine, []byte("s3cret"), 0o600))
	require.NoError(t, os.WriteFile(theirs, []byte("s3cret"), 0o600))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(theirs, link))
	allowed := policy.Secrets{Env: []string{"MINE", "TEMPORAL_*"}, Files: []string{dir + "/*"}}
	base := []string{"MINE=1", "THEIRS=1", "TEMPORAL_API_KEY=1"}
	for _, from := range []spec.Source{{FromEnv: "MINE"}, {FromFile: mine}, {FromFile: dir + "/./mine"}} {
		_, problem := Secret(base, from, allowed)
		assert.Nil(t, problem, "%v", from)
	}
	const notLent = ": the policy of the host does not give it to this run; ask its owner for secrets."
	for want, from := range map[string]spec.Source{
		"from_env: THEIRS" + notLent + "env in a rule, or name another variable":                                               {FromEnv: "THEIRS"},
		"from_env: TEMPORAL_API_KEY belongs to the host worker and is never passed to tasks; name another variable, or a file": {FromEnv: "TEMPORAL_API_KEY"},
		"from_file: " + theirs + notLent + "files in a rule, or name another file":                                             {FromFile: theirs},
		"from_file: " + link + notLent + "files in a rule, or name another file":                                               {FromFile: link},
		"from_file: " + dir + "/../x" + notLent + "files in a rule, or name another file":                                      {FromFile: dir + "/../x"},
		"from_file: /nonexistent" + notLent + "files in a rule, or name another file":                                          {FromFile: "/nonexistent"},
	} {
		value, problem := Secret(base, from, allowed)
		require.NotNil(t, problem, want)
		assert.Empty(t, value)
		assert.Equal(t, want, problem.String())
	}
}
