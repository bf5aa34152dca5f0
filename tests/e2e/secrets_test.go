package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// A task of the same user finds no credentials of its host worker: neither in its own
// environment and open files, nor in the environment, memory and files of the processes above
// it. Only public files are open.
func TestTasksCannotReadTheSecretsOfTheirHostWorker(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	h := newStranger(t)
	h.write("look", `
env | grep canary && echo "in the own environment"
for fd in $(ls /proc/self/fd); do [ $fd -gt 3 ] && echo "an open file: $(readlink /proc/self/fd/$fd)"; done
pid=$PPID above=0
until [ $pid -le 1 ] || [ "$(ps -o comm= -p $pid)" != clusterrun ]; do
	above=$((above+1))
	(: < /proc/$pid/environ) 2>/dev/null && echo "$above: environ can be read"
	(: < /proc/$pid/mem) 2>/dev/null && echo "$above: memory can be read"
	(: < /proc/$pid/maps) 2>/dev/null && head -c 1 /proc/$pid/maps >/dev/null 2>&1 && echo "$above: maps can be read"
	ls /proc/$pid/fd >/dev/null 2>&1 && echo "$above: files can be listed"
	tr '\0' '\n' < /proc/$pid/cmdline | grep canary && echo "$above: in the arguments"
	for child in $(cat /proc/$pid/task/*/children); do
		grep -qs canary /proc/$child/environ && echo "$above: in the environment of a child"
	done
	pid=$(ps -o ppid= -p $pid | tr -d ' ')
done
echo "looked at $above"`)
	look := []string{"-n", "1", "--", "bash", h.path("look")}
	canary := []string{"TEMPORAL_ADDRESS=" + s.Address, "TEMPORAL_GRPC_META_CANARY=canary"}

	// The supervisor and its launcher.
	code, stdout, stderr := h.run(canary, append([]string{h.program, "run"}, look...)...)
	require.Zero(t, code, stderr)
	assert.Equal(t, "[worker-0]:    looked at 2\n", stdout)

	// The same with a host worker that serves all users.
	worker := h.start(canary, h.program, "worker", "--state-dir", h.path("state"), "--host-name", "host-a", "--queue", "secrets")
	harness.Eventually(t, "the worker is ready", func() bool { return strings.Contains(worker.Stderr(), "ready") })
	code, stdout, stderr = h.run([]string{"TEMPORAL_ADDRESS=" + s.Address}, append([]string{h.program, "run", "--remote", "--queue", "secrets"}, look...)...)
	require.Zero(t, code, stderr)
	assert.Equal(t, "[worker-0]:    looked at 1\n", stdout)
}

// stranger is a user of the machine with a home and the program: the user no one if the test
// runs as root, or else the user of the test.
type stranger struct {
	t          *testing.T
	home       string
	program    string
	credential *syscall.Credential
}

const nobody = 65534

func newStranger(t *testing.T) *stranger {
	t.Helper()
	// The user must be able to reach the directory.
	dir, err := os.MkdirTemp("", "clusterrun-stranger-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &stranger{t: t, home: dir, program: filepath.Join(dir, "clusterrun")}
	copyProgram(t, harness.Clusterrun(t), h.program)
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(dir, nobody, nobody))
		h.credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return h
}

func (h *stranger) path(name string) string { return filepath.Join(h.home, name) }

func (h *stranger) write(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.path(name), []byte(text), 0o644))
}

func (h *stranger) start(env []string, args ...string) *harness.Process {
	h.t.Helper()
	return harness.StartAs(h.t, h.credential, h.home, harness.Env(h.home, env...), args...)
}

func (h *stranger) run(env []string, args ...string) (code int, stdout, stderr string) {
	h.t.Helper()
	p := h.start(env, args...)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}
