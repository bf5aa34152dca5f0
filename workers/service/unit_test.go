package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// verify returns what systemd finds wrong with a unit.
func verify(t *testing.T, text string, forUser bool) string {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed")
	}
	dir := t.TempDir()
	const name = "clusterrun-of-a-test.service"
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	args := []string{"verify", "--man=no", path}
	if forUser {
		args = append(args, "--user")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), name) {
		t.Skipf("systemd-analyze does not work here: %v: %s", err, out)
	}
	var about []string
	for line := range strings.Lines(string(out)) {
		// Other units of this machine may be wrong.
		if strings.Contains(line, name) {
			about = append(about, line)
		}
	}
	return strings.Join(about, "")
}

func self(t *testing.T) string {
	t.Helper()
	program := must.Get(os.Executable())(t)
	return program
}

func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	odd := []string{"--label=a=x y%h$HOME", `--host-name="\`, "--state-dir=/srv/a b"}
	for name, u := range map[string]Unit{
		"of the system":              {Name: "c", StateDir: "/var/lib/c", OwnStateDir: true, RunAs: "root"},
		"of the system, with policy": {Name: "c", StateDir: "/var/lib/c", OwnStateDir: true, Traversable: true, Args: odd},
		"of a user":                  {Name: "c", StateDir: "/home/%a b", ForUser: true},
		"of a controller":            {Name: "c", StateDir: "/srv/a b", RunAs: "root", Controller: true},
		"of a user's controller":     {Name: "c", StateDir: "/srv/a b", ForUser: true, Controller: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u.Program, u.Environment = self(t), "/etc/100% sure.env"
			assert.Empty(t, verify(t, u.Text(), u.ForUser), u.Text())
			assert.NotEmpty(t, verify(t, strings.Replace(u.Text(), "KillMode=", "KilMode=", 1), u.ForUser), "systemd says what is wrong")
		})
	}
}

// Tasks inherit what systemd does to their host worker.
func TestOnlyControllersAreHardened(t *testing.T) {
	t.Parallel()
	host := Unit{Name: "c", Program: "/p", StateDir: "/s"}
	for _, setting := range []string{"NoNewPrivileges", "Protect", "Private", "Restrict", "SystemCall", "CapabilityBoundingSet", "ReadWritePaths"} {
		assert.NotContains(t, strings.ReplaceAll(host.Text(), "RestartPrevent", ""), "\n"+setting)
		controller := host
		controller.Controller = true
		assert.Contains(t, controller.Text(), "\n"+setting)
		controller.ForUser = true
		assert.NotContains(t, controller.Text(), "\n"+setting, "a user's systemd cannot do it everywhere")
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	u := Unit{Name: "train", Program: "/opt/c r", Args: []string{"--slots=8"}, StateDir: "/var/lib/train", OwnStateDir: true, RunAs: "alice"}
	text := u.Text()
	assert.True(t, strings.HasPrefix(text, Mark))
	for _, line := range []string{
		"Type=notify", `ExecStart="/opt/c r" worker --slots=8`, `ExecReload="/opt/c r" worker upgrade --state-dir /var/lib/train`,
		`ExecStop="/opt/c r" worker stop --force --state-dir /var/lib/train`,
		"User=alice", "StateDirectory=train", "StateDirectoryMode=0700", "Delegate=yes", "KillMode=mixed", "OOMPolicy=continue",
		"TimeoutStartSec=infinity", "Restart=on-failure", "WantedBy=multi-user.target", "After=network-online.target",
	} {
		assert.Contains(t, text, "\n"+line+"\n")
	}
	u.Traversable = true
	assert.Contains(t, u.Text(), "\nStateDirectoryMode=0711\n")
	u.ForUser, u.OwnStateDir = true, false
	assert.Contains(t, u.Text(), "\nWantedBy=default.target\n")
	assert.NotContains(t, u.Text(), "network-online.target", "a user's systemd does not know it")
	assert.NotContains(t, u.Text(), "StateDirectory")
}

// Words arrive at the program as they are.
func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"--address=t:7233": "--address=t:7233",
		"":                 `""`,
		"a b":              `"a b"`,
		"100%":             "100%%",
		"$HOME":            "$$HOME",
		`a"b\c`:            `"a\"b\\c"`,
		"a'b":              `"a'b"`,
		"a\nb\tc":          `"a\x0ab\x09c"`,
		";":                `";"`,
		"é":                `"é"`,
	} {
		assert.Equal(t, "/p "+want, command("/p", word))
	}
	assert.Equal(t, `"/a $b"`, command("/a $b"), "of the program systemd replaces nothing")
}
