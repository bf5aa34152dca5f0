package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// torchrun runs a line in a shell with torchrun as an alias for clusterrun, in a directory with the
// script train.py.
func (l *local) torchrun(script, line string, env ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	dir := l.t.TempDir()
	require.NoError(l.t, os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o644))
	env = append(env, "PATH="+filepath.Dir(harness.Clusterrun(l.t))+":/usr/bin:"+os.Getenv("PATH"))
	p := harness.Start(l.t, dir, harness.Env(l.home, env...), "bash", "-c",
		"shopt -s expand_aliases\nalias torchrun='"+harness.Clusterrun(l.t)+" torchrun'\n"+line)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}

// clusterrun does not change torchrun's behavior, and writes only the processes' output.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	const omp = "OMP_NUM_THREADS=2"

	t.Run("raw output, and the environment of torchrun", func(t *testing.T) {
		code, stdout, stderr := l.torchrun(`import json, os, sys
names = ("TORCHELASTIC", "ROLE", "GROUP", "LOCAL", "MASTER", "OMP", "SLURM", "TF_CONFIG", "JAX", "RANK", "WORLD")
env = {name: value for name, value in os.environ.items() if name.startswith(names)}
os.write(1, (json.dumps([sys.argv[1:], env]) + "\n").encode())`, "torchrun --nproc-per-node 2 --rdzv-id job7 --max-restarts 3 train.py --nnodes 'a b' --local_rank='${local_rank}' 'it'\\''s $HOME'",
			omp, "SLURM_JOB_ID=7", "TORCHELASTIC_RESTART_COUNT=9")
		assert.Zero(t, code)
		assert.Empty(t, stderr)
		ranks := map[string]bool{}
		for line := range strings.Lines(stdout) {
			var args []string
			env := map[string]string{}
			require.NoError(t, json.Unmarshal([]byte(line), &[]any{&args, &env}), "no prefix: %s", line)
			assert.Equal(t, []string{"--nnodes", "a b", "--local_rank=" + env["LOCAL_RANK"], "it's $HOME"}, args)
			for name, want := range map[string]string{
				"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_WORLD_SIZE": "2",
				"ROLE_NAME": "default", "TORCHELASTIC_RUN_ID": "job7", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3",
				"OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "7",
			} {
				assert.Equal(t, want, env[name], name)
			}
			assert.Equal(t, env["RANK"], env["LOCAL_RANK"])
			assert.Equal(t, env["RANK"], env["ROLE_RANK"])
			assert.NotEmpty(t, env["MASTER_PORT"])
			assert.NotContains(t, env, "TF_CONFIG")
			ranks[env["RANK"]] = true
		}
		assert.Equal(t, map[string]bool{"0": true, "1": true}, ranks)
	})

	t.Run("--redirects 3 is silent, --tee has prefixes", func(t *testing.T) {
		const script = "import sys\nprint('out')\nprint('err', file=sys.stderr)"
		code, stdout, stderr := l.torchrun(script, "torchrun --nproc_per_node=2 --redirect=3 train.py", omp)
		assert.Zero(t, code)
		assert.Empty(t, stdout+stderr)
		code, stdout, stderr = l.torchrun(script, "torchrun --nproc-per-node 2 -r 3 -t 0:1,1:2 train.py", omp)
		assert.Zero(t, code)
		assert.Equal(t, "[default0]:out\n", stdout)
		assert.Equal(t, "[default1]:err\n", stderr)
		code, stdout, _ = l.torchrun(script, "torchrun -t 1 train.py", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=[rank${rank}]: ")
		assert.Zero(t, code)
		assert.Equal(t, "[rank0]: out\n", stdout)
		code, stdout, _ = l.torchrun(script, "torchrun -t 1 --log-line-prefix-template '${hostname}:$rank ' train.py", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=no")
		assert.Zero(t, code)
		host := must.Get(os.Hostname())(t)
		assert.Equal(t, host+":0 out\n", stdout)
	})

	t.Run("rank 0 serves the store", func(t *testing.T) {
		code, stdout, stderr := l.torchrun(`import os, socket, time
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
generation = os.environ["TORCHELASTIC_RESTART_COUNT"]
if os.environ["RANK"] == "0":
    s = socket.create_server(address)
    s.accept()[0].sendall(generation.encode())
    raise SystemExit
while True:
    try:
        s = socket.create_connection(address)
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
os.write(1, s.recv(9) + (" " + os.environ["TORCHELASTIC_USE_AGENT_STORE"] + "\n").encode())
raise SystemExit(generation == "0")`, "torchrun --nproc-per-node 2 --max-restarts 1 --run-path train.py", omp)
		assert.Zero(t, code, stderr)
		assert.Equal(t, "0 False\n1 False\n", stdout)
	})

	t.Run("a rerun, with another command", func(t *testing.T) {
		l := newLocal(t)
		l.fails(1, "torchrun", "--no-python", "false")
		assert.NotContains(t, l.fails(1, "rerun", "--last", "--", "sh", "-c", "exit 7"), "run sh-", "torchrun does not print it either")
	})

}
