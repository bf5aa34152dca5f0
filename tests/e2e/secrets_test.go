package e2e

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A task does not find its host worker's credentials if both run as the same user, neither in its
// own environment and open files, nor in its ancestors' environments, open files, memory and files.
// Only public files are open.
func TestTasksCannotReadTheSecretsOfTheirHostWorker(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	h := newStranger(t)
	h.write("look", `
env | grep canary && echo "in the own environment"
for fd in $(ls /proc/self/fd); do [ $fd -gt 3 ] && echo "an open file: $(readlink /proc/self/fd/$fd)"; done
pid=$PPID above=0
until [ $pid -le 1 ] || [[ "$(ps -o comm= -p $pid)" != clusterrun* ]]; do
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

	// The same with a host worker for all users.
	worker := h.start(canary, h.program, "worker", "--state-dir", h.path("state"), "--host-name", "host-a", "--queue", "secrets")
	harness.Eventually(t, "the worker is ready", func() bool { return strings.Contains(worker.Stderr(), "ready") })
	code, stdout, stderr = h.run([]string{"TEMPORAL_ADDRESS=" + s.Address}, append([]string{h.program, "run", "--remote", "--queue", "secrets"}, look...)...)
	require.Zero(t, code, stderr)
	assert.Equal(t, "[worker-0]:    looked at 1\n", stdout)
}

// stranger is a user with a home and the program. If the test runs as root, the user is nameless,
// like in a container. Otherwise it is the test's user.
type stranger struct {
	t          *testing.T
	home       string
	program    string
	credential *syscall.Credential
}

const unknown = 4000000

func newStranger(t *testing.T) *stranger {
	t.Helper()
	// The user must be able to access the directory.
	dir := must.Get(os.MkdirTemp("", "clusterrun-stranger-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &stranger{t: t, home: dir, program: filepath.Join(dir, "clusterrun")}
	copyProgram(t, harness.Clusterrun(t), h.program)
	copyProgram(t, harness.Supervisor(t), filepath.Join(dir, supervise.ProgramName))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(dir, unknown, unknown))
		h.credential = &syscall.Credential{Uid: unknown, Gid: unknown}
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

// A secret is read on the host when a process starts, again on each restart, and occurs nowhere
// else: not in the database, nor in plans, journals and logs, nor in any output.
func TestSecretsStayOnTheirHost(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t) // with its Web UI
	const first, second, inEnv, open = "canary-9c1f-first", "canary-9c1f-second", "canary-9c1f-env", "plain-9c1f"
	f := prepare(t, s, s.StartWorkerWith(t, []string{"HOST_TOKEN=" + inEnv}))
	secret := filepath.Join(f.dir, "token")
	require.NoError(t, os.WriteFile(secret, []byte(first+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "next"), []byte(second), 0o600))

	run := f.start(&spec.RunSpec{AutoRestart: true, Env: spec.Env{"PLAIN": {Value: open}}, Tasks: []spec.TaskGroup{{
		Type: "worker", Env: spec.Env{"FILE_TOKEN": {From: spec.Source{FromFile: secret}}, "ENV_TOKEN": {From: spec.Source{FromEnv: "HOST_TOKEN"}}},
		Command: []string{"bash", "-c", `
			echo "$FILE_TOKEN $ENV_TOKEN" >> "$DIR/seen"
			case "$FILE_TOKEN" in
			*first) mv "$DIR/next" "$DIR/token";;
			*second) rm "$DIR/token";;
			esac
			echo "about $PLAIN" >&2
			exit 3`},
	}}})
	result := f.result(run)
	assert.Equal(t, first+" "+inEnv+"\n"+second+" "+inEnv+"\n", f.file("seen"), "a restart reads the file again")
	require.NotNil(t, result.FirstFailure)
	assert.Contains(t, result.FirstFailure.Message, "env.FILE_TOKEN.from_file: on host host-a: "+secret+": no such file or directory")

	// Refused before anything starts.
	err := f.start(&spec.RunSpec{Env: spec.Env{"T": {From: spec.Source{FromEnv: "NO_SUCH_TOKEN"}}}, Tasks: []spec.TaskGroup{harness.Shell("worker", 2, "touch $DIR/started")}}).Get(t.Context(), nil)
	require.ErrorContains(t, err, "env.T.from_env: on host host-a: the host worker's environment does not contain NO_SUCH_TOKEN (worker-0 and 1 more); start the host worker with it")
	assert.NoFileExists(t, filepath.Join(f.dir, "started"))

	var shown bytes.Buffer
	show := func(code int, stdout, stderr string) { shown.WriteString(stdout + stderr) }
	id := run.GetID()
	for _, args := range [][]string{{"status", id}, {"status", "--json", id}, {"logs", id}, {"list", "--json"}, {"wait", "--json", id}, {"stacks", id}} {
		show(f.CLI(t, args...))
	}
	for events := f.client.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		shown.WriteString(must.Get(events.Next())(t).String())
	}
	for _, path := range []string{"", "/history", "?view=full"} {
		shown.WriteString(get(t, "http://"+strings.TrimPrefix(s.UI, "http://")+"/api/v1/namespaces/default/workflows/"+id+path))
	}
	f.worker.Kill(15)
	f.worker.ExitCode()
	shown.WriteString(f.worker.Stdout() + f.worker.Stderr())
	// Base64 payloads occur literally in the database.
	assert.False(t, strings.Contains(shown.String(), "canary-9c1f"), "the secret is shown")
	assert.True(t, strings.Contains(shown.String(), open), "what is no secret is shown")

	s.Signal(15) // so that the whole database is on disk
	s.AwaitEnd()
	assert.Empty(t, filesWith(t, "canary-9c1f", s.Dir(), f.worker.State))
	assert.NotEmpty(t, filesWith(t, open, s.Dir()), "the database has what is no secret")
	assert.NotEmpty(t, filesWith(t, open, f.worker.State), "and so have the logs")
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url) //nolint:gosec,noctx // of our own server
	require.NoError(t, err)
	defer r.Body.Close()
	b := must.Get(io.ReadAll(r.Body))(t)
	require.NotEmpty(t, b)
	return string(b)
}

// filesWith lists the files in dirs that contain the text.
func filesWith(t *testing.T, text string, dirs ...string) (found []string) {
	t.Helper()
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(text)) {
				found = append(found, path)
			}
			return err
		}))
	}
	return found
}
