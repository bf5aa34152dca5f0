package remotehosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommandLine(t *testing.T) {
	assert.Equal(t, []string{
		"/usr/bin/ssh", "-F", "config", "-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=6", "ann@a", "script",
	}, commandLine([]string{"/usr/bin/ssh", "-F", "config"}, "ann@a", "script"))
	assert.Equal(t, []string{"rsh", "-l", "ann", "a", "script"}, commandLine([]string{"rsh", "-l", "ann"}, "a", "script"),
		"what is not ssh gets no options of ssh")
}

// program writes a program that prints its command line and exits with code.
func program(t *testing.T, path, code string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho \""+filepath.Base(filepath.Dir(path))+" $*\"\nexit "+code+"\n"), 0o700))
	return path
}

// execute runs a script in a shell like sshd, with the given home and PATH.
func execute(t *testing.T, shell, text, home, path, stdin string) (out string, code int) {
	t.Helper()
	cmd := exec.Command(shell, "-c", text)
	cmd.Env = []string{"HOME=" + home, "PATH=" + path + ":/usr/bin:/bin"}
	cmd.Stdin = strings.NewReader(stdin)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func TestScript(t *testing.T) {
	for _, shell := range []string{"sh", "bash", "csh", "fish", "zsh"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		t.Run(shell, func(t *testing.T) {
			dir := t.TempDir()
			ours := filepath.Join(dir, "it's ours", "clusterrun")
			out, code := execute(t, shell, script(ours), dir, filepath.Join(dir, "bin"), "")
			assert.Equal(t, notThere, code)
			assert.Empty(t, out)

			program(t, filepath.Join(dir, "bin", "clusterrun"), "3")
			out, code = execute(t, shell, script(ours), dir, filepath.Join(dir, "bin"), "")
			assert.Equal(t, 3, code, "it ends as the program does")
			assert.Equal(t, "bin remote-host\n", out)

			program(t, ours, "2")
			out, code = execute(t, shell, script(ours), dir, filepath.Join(dir, "bin"), "")
			assert.Equal(t, 2, code)
			assert.Equal(t, "it's ours remote-host\nit's ours version\n", out, "the path that ours has comes first; one that does not know the subcommand says its version")
		})
	}
}

func TestReason(t *testing.T) {
	exit := func(code string) error { return exec.Command("sh", "-c", "exit "+code).Run() }
	c := Config{Agent: []string{"/usr/bin/ssh"}, Version: "clusterrun 2"}
	for _, r := range []struct {
		err  error
		said []string
		want string
	}{
		{exit("255"), []string{"No ED25519 host key is known for a.", "Host key verification failed."},
			"ssh: No ED25519 host key is known for a.; Host key verification failed."},
		{exit("255"), []string{"root@a: Permission denied (publickey)."},
			"ssh: root@a: Permission denied (publickey)."},
		{exit("127"), nil, "clusterrun is neither at the path where it is installed on this machine nor in the PATH of a command run by ssh; install it"},
		{exit("127"), []string{"sh: exec: not found"}, "ssh: sh: exec: not found"},
		{exit("2"), []string{"clusterrun: there is no command", "clusterrun 1, go1"},
			"its clusterrun is clusterrun 1, go1, this one is clusterrun 2; install the same version"},
		{exit("2"), []string{"usage: agent"}, "ssh: usage: agent"},
		{exit("1"), nil, "ssh: exit status 1"},
		{nil, nil, "ssh has exited"},
	} {
		assert.Equal(t, r.want, c.reason(r.err, r.said))
	}
}

func TestTail(t *testing.T) {
	var said tail
	for range 2000 {
		_, _ = said.Write([]byte("noise\r\n"))
	}
	_, _ = said.Write([]byte("\none\r\n  two\nthree"))
	assert.Equal(t, []string{"one", "two", "three"}, said.lines())
	assert.LessOrEqual(t, len(said.text), maxSaid)
}
