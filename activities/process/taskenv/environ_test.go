package taskenv

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// twoHosts runs a chief, two workers and a ps on host a, and an evaluator on b.
func twoHosts() *hostapi.Cluster {
	return &hostapi.Cluster{
		RPCLayer: "grpc", MasterAddr: "10.0.0.1", MasterPort: 20001, JAXPort: 20002, Hosts: 2,
		Profiles: []spec.EnvProfile{spec.EnvTensorFlow, spec.EnvTorch, spec.EnvJAX},
		Members: []hostapi.Member{
			{Type: "chief", Index: 0, Rank: 0, Host: "a", Address: "10.0.0.1:2222", LocalRank: 0, LocalWorldSize: 4},
			{Type: "worker", Index: 0, Rank: 1, Host: "a", Address: "10.0.0.1:2223", LocalRank: 1, LocalWorldSize: 4},
			{Type: "worker", Index: 1, Rank: 2, Host: "a", Address: "10.0.0.1:2224", LocalRank: 2, LocalWorldSize: 4},
			{Type: "ps", Index: 0, Rank: 3, Host: "a", Address: "10.0.0.1:2225", LocalRank: 3, LocalWorldSize: 4},
			{Type: "evaluator", Index: 0, Rank: 4, Host: "b", Address: "10.0.0.2:2222", LocalRank: 0, LocalWorldSize: 1, HostIndex: 1},
		},
	}
}

func process(task string) Process {
	return Process{
		Cluster: twoHosts(), Task: task, WorkflowID: "iris-1", RunID: "0198-abc",
		Restart: 2, MaxRestarts: 5, Generation: 3,
		ResultFile: "/logs/result.json", ErrorFile: "/logs/error.json", LogDir: "/logs",
	}
}

func environ(t *testing.T, base []string, p Process) map[string]string {
	t.Helper()
	list := must.Get(Environ(base, p))(t)
	assert.True(t, slices.IsSorted(list), "sorted: %q", list)
	env := fromList(list)
	assert.Len(t, env, len(list), "each name once: %q", list)
	return env
}

// The help page lists all variables that a process gets.
func TestThePageHasAllVariables(t *testing.T) {
	page := must.Get(os.ReadFile("../../../starter/help/topics/reference/tasks.md"))(t)
	p := process("worker-1")
	p.TraceFile, p.Socket, p.PythonHook, p.Dir = "/logs/trace", "/socket", "/hook", "/job"
	for name := range environ(t, nil, p) {
		assert.Contains(t, string(page), "`"+name+"`")
	}
}

func TestTFConfig(t *testing.T) {
	for task, want := range map[string]string{
		"chief-0": `{"cluster":{"chief":["10.0.0.1:2222"],"worker":["10.0.0.1:2223","10.0.0.1:2224"],
			"ps":["10.0.0.1:2225"],"evaluator":["10.0.0.2:2222"]},"task":{"type":"chief","index":0},"rpc_layer":"grpc"}`,
		"worker-1": `{"cluster":{"chief":["10.0.0.1:2222"],"worker":["10.0.0.1:2223","10.0.0.1:2224"],
			"ps":["10.0.0.1:2225"],"evaluator":["10.0.0.2:2222"]},"task":{"type":"worker","index":1},"rpc_layer":"grpc"}`,
		"evaluator-0": `{"cluster":{"chief":["10.0.0.1:2222"],"worker":["10.0.0.1:2223","10.0.0.1:2224"],
			"ps":["10.0.0.1:2225"],"evaluator":["10.0.0.2:2222"]},"task":{"type":"evaluator","index":0},"rpc_layer":"grpc"}`,
	} {
		assert.JSONEq(t, want, environ(t, nil, process(task))["TF_CONFIG"], task)
	}
}

func TestTFConfigOfATaskOutsideTheSpec(t *testing.T) {
	p := process("worker-4")
	p.Cluster.RPCLayer = "grpc+loas"
	p.Cluster.Members = append(p.Cluster.Members, hostapi.Member{Type: "worker", Index: 4, Rank: 5, Host: "a", Address: "10.0.0.1:2230", LocalRank: 4, LocalWorldSize: 5})
	assert.JSONEq(t, `{"cluster":{"chief":["10.0.0.1:2222"],
		"worker":{"0":"10.0.0.1:2223","1":"10.0.0.1:2224","4":"10.0.0.1:2230"},
		"ps":["10.0.0.1:2225"],"evaluator":["10.0.0.2:2222"]},
		"task":{"type":"worker","index":4},"rpc_layer":"grpc+loas"}`, environ(t, nil, p)["TF_CONFIG"])

	next := process("worker-2")
	next.Cluster.Members = append(next.Cluster.Members, hostapi.Member{Type: "worker", Index: 2, Rank: 5, Host: "a", Address: "10.0.0.1:2230"})
	assert.Contains(t, environ(t, nil, next)["TF_CONFIG"], `"worker":["10.0.0.1:2223","10.0.0.1:2224","10.0.0.1:2230"]`)
}

// The environment lacks the host worker's variables that the spec unsets, and contains those that
// it sets.
func TestUnset(t *testing.T) {
	base := []string{"PATH=/bin", "LD_PRELOAD=x.so", "NCCL_DEBUG=INFO", "NCCL_ALGO=Ring", "LD_PRELOAD_2=y", "MASTER=m"}
	p := process("worker-1")
	p.Unset, p.Env = []string{"LD_PRELOAD", "NCCL_*", "MASTER_ADDR"}, map[string]string{"NCCL_ALGO": "Tree"}
	got := environ(t, base, p)
	for _, name := range []string{"LD_PRELOAD", "NCCL_DEBUG"} {
		assert.NotContains(t, got, name)
	}
	assert.Equal(t, []string{"/bin", "y", "m", "Tree", "10.0.0.1"}, []string{got["PATH"], got["LD_PRELOAD_2"], got["MASTER"], got["NCCL_ALGO"], got["MASTER_ADDR"]})
	p.Unset = []string{"*"}
	assert.NotContains(t, environ(t, base, p), "PATH")
}

// PWD is the directory that the process starts in, not the host worker's or a shell's.
func TestWorkingDirectory(t *testing.T) {
	p := process("worker-1")
	p.Dir = "/train/b"
	base := []string{"PWD=/train/a", "OLDPWD=/train"}
	got := environ(t, base, p)
	assert.Equal(t, "/train/b", got["PWD"])
	assert.NotContains(t, got, "OLDPWD")
	p.Env = map[string]string{"PWD": "/elsewhere", "OLDPWD": "/work"}
	got = environ(t, base, p)
	assert.Equal(t, []string{"/elsewhere", "/work"}, []string{got["PWD"], got["OLDPWD"]}, "the spec has the last word")
	p.Unset, p.Env = []string{"PWD"}, nil
	assert.NotContains(t, environ(t, base, p), "PWD")
}

func TestWholeEnvironment(t *testing.T) {
	got := environ(t, []string{"PATH=/bin", "HOME=/root"}, process("worker-1"))
	delete(got, "TF_CONFIG")
	assert.Equal(t, map[string]string{
		"PATH": "/bin", "HOME": "/root", "PYTHONUNBUFFERED": "1",

		"RANK": "2", "WORLD_SIZE": "5", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "4",
		"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "2",
		"ROLE_NAME": "worker", "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2",
		"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "20001",
		"TORCHELASTIC_RUN_ID": "iris-1", "TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_MAX_RESTARTS": "5",
		"TORCHELASTIC_USE_AGENT_STORE": "False", "TORCHELASTIC_ERROR_FILE": "/logs/error.json",
		"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "OMP_NUM_THREADS": "1",

		"JAX_COORDINATOR_ADDRESS": "10.0.0.1:20002", "JAX_NUM_PROCESSES": "5", "JAX_PROCESS_ID": "2",

		"CLUSTERRUN_RUN_ID": "iris-1", "CLUSTERRUN_TEMPORAL_RUN_ID": "0198-abc",
		"CLUSTERRUN_TASK": "worker-1", "CLUSTERRUN_TASK_TYPE": "worker", "CLUSTERRUN_TASK_INDEX": "1",
		"CLUSTERRUN_RANK": "2", "CLUSTERRUN_WORLD_SIZE": "5",
		"CLUSTERRUN_LOCAL_RANK": "2", "CLUSTERRUN_LOCAL_WORLD_SIZE": "4",
		"CLUSTERRUN_RESTART_COUNT": "2", "CLUSTERRUN_GENERATION": "3",
		"CLUSTERRUN_HOST": "a", "CLUSTERRUN_ADDRESS": "10.0.0.1:2224",
		"CLUSTERRUN_RESULT_FILE": "/logs/result.json", "CLUSTERRUN_ERROR_FILE": "/logs/error.json", "CLUSTERRUN_LOG_DIR": "/logs",
		"CLUSTERRUN_STACK_SIGNAL": "60", "CLUSTERRUN_STACK_FILE": "/logs/stacks",
	}, got)
}

// torch's Flight Recorder writes to the process's directory unless another place was chosen, even
// by the older variable, which torch ignores if the newer one is set.
func TestFlightRecorder(t *testing.T) {
	const newer, older, ours = "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/logs/torch_trace_rank_"
	p := process("worker-1")
	assert.NotContains(t, environ(t, nil, p), newer, "the run keeps no files")
	p.TraceFile = ours
	got := environ(t, nil, p)
	assert.Equal(t, []string{ours, ours}, []string{got[newer], got[older]})
	for name := range got {
		assert.NotContains(t, name, "BUFFER_SIZE", "recording is torch's choice")
	}

	got = environ(t, []string{older + "=/data/trace_"}, p)
	assert.Equal(t, "/data/trace_", got[older])
	assert.NotContains(t, got, newer)
	p.Env = map[string]string{older: "/data/trace_"}
	got = environ(t, nil, p)
	assert.Equal(t, "/data/trace_", got[older])
	assert.NotContains(t, got, newer)

	p.Env = nil
	got = environ(t, []string{"CLUSTERRUN_LOG_DIR=/outer", newer + "=/outer/torch_trace_rank_", older + "=/outer/torch_trace_rank_"}, p)
	assert.Equal(t, []string{ours, ours}, []string{got[newer], got[older]}, "a run in a task of another run")
	p.Cluster.Profiles = nil
	assert.NotContains(t, environ(t, nil, p), newer)
}

func TestFaulthandler(t *testing.T) {
	p := process("worker-1")
	assert.NotContains(t, environ(t, nil, p), "PYTHONFAULTHANDLER", "python_stacks: false")
	p.PythonHook = "/state/" + HookPrefix + "1"
	assert.Equal(t, "1", environ(t, nil, p)["PYTHONFAULTHANDLER"])
	assert.Equal(t, "", environ(t, []string{"PYTHONFAULTHANDLER="}, p)["PYTHONFAULTHANDLER"], "set, though to nothing")
}

func TestSecondHost(t *testing.T) {
	got := environ(t, nil, process("evaluator-0"))
	assert.Equal(t, "1", got["GROUP_RANK"])
	assert.Equal(t, "0", got["LOCAL_RANK"])
	assert.Equal(t, "4", got["RANK"])
	assert.NotContains(t, got, "OMP_NUM_THREADS", "it has the host to itself")
}

func TestIPv6Coordinator(t *testing.T) {
	p := process("chief-0")
	p.Cluster.MasterAddr = "fd00::1"
	got := environ(t, nil, p)
	assert.Equal(t, "fd00::1", got["MASTER_ADDR"])
	assert.Equal(t, "[fd00::1]:20002", got["JAX_COORDINATOR_ADDRESS"])
}

// TE-78, TE-79: profiles with a rank pass it on.
func TestProfilesAreOptional(t *testing.T) {
	p := process("chief-0")
	p.Cluster.Profiles = nil
	for name := range environ(t, nil, p) {
		assert.True(t, strings.HasPrefix(name, ownPrefix) || name == "PYTHONUNBUFFERED", name)
	}
	p.Cluster.Profiles = []spec.EnvProfile{spec.EnvJAX}
	got := environ(t, nil, p)
	assert.Contains(t, got, "JAX_COORDINATOR_ADDRESS")
	assert.NotContains(t, got, "TF_CONFIG")
	assert.NotContains(t, got, "RANK")

	p.Cluster.Profiles = []spec.EnvProfile{"nosuch"}
	_, err := Environ(nil, p)
	assert.EqualError(t, err, `env_profiles: unknown profile "nosuch"`)
}

func TestPrecedence(t *testing.T) {
	base := []string{
		"RANK=77", "CLUSTERRUN_SOCKET=/outer", "KEPT=base", "CHANGED=first", "CHANGED=base",
		"OMP_NUM_THREADS=8", "PYTHONUNBUFFERED=", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "GRPC_FAIL_FAST=use_caller",
	}
	p := process("worker-0")
	got := environ(t, base, p)
	assert.Equal(t, "1", got["RANK"], "what another launcher said does not count")
	assert.NotContains(t, got, "CLUSTERRUN_SOCKET")
	assert.Equal(t, "base", got["KEPT"])
	assert.Equal(t, "base", got["CHANGED"], "the later of two wins")
	assert.Equal(t, "8", got["OMP_NUM_THREADS"])
	assert.Equal(t, "", got["PYTHONUNBUFFERED"], "set, though to nothing")
	assert.Equal(t, "0", got["TORCH_NCCL_ASYNC_ERROR_HANDLING"])
	assert.Equal(t, "use_caller", got["GRPC_FAIL_FAST"])

	p.Env = map[string]string{
		"CHANGED": "spec", "OMP_NUM_THREADS": "4", "MASTER_ADDR": "other", "GRPC_FAIL_FAST": "False",
		"CLUSTERRUN_RANK": "9", "CLUSTERRUN_MINE": "x", "TEMPORAL_ADDRESS": "the program's own",
	}
	got = environ(t, base, p)
	assert.Equal(t, "spec", got["CHANGED"])
	assert.Equal(t, "4", got["OMP_NUM_THREADS"])
	assert.Equal(t, "other", got["MASTER_ADDR"])
	assert.Equal(t, "False", got["GRPC_FAIL_FAST"])
	assert.Equal(t, "the program's own", got["TEMPORAL_ADDRESS"])
	assert.Equal(t, "1", got["CLUSTERRUN_RANK"])
	assert.NotContains(t, got, "CLUSTERRUN_MINE")
}

func TestGRPCFailFastOnlyIfGiven(t *testing.T) {
	assert.NotContains(t, environ(t, nil, process("worker-0")), "GRPC_FAIL_FAST")
}

func TestNoFilesNoVariables(t *testing.T) {
	p := process("worker-0")
	p.ResultFile, p.ErrorFile, p.LogDir = "", "", ""
	got := environ(t, nil, p)
	for _, name := range []string{"CLUSTERRUN_RESULT_FILE", "CLUSTERRUN_ERROR_FILE", "CLUSTERRUN_LOG_DIR", "TORCHELASTIC_ERROR_FILE", "CLUSTERRUN_STACK_FILE"} {
		assert.NotContains(t, got, name)
	}
}

func TestRefused(t *testing.T) {
	_, err := Environ(nil, process("worker-9"))
	assert.EqualError(t, err, "task worker-9 is not in the cluster")

	for _, env := range []map[string]string{{"": "x"}, {"A=B": "x"}, {"A\x00": "x"}, {"A": "\x00"}} {
		p := process("worker-0")
		p.Env = env
		_, err := Environ(nil, p)
		assert.ErrorContains(t, err, "env: ", "%q", env)
	}

	p := process("worker-0")
	p.Env = map[string]string{"BIG": strings.Repeat("x", maxVariable)}
	_, err = Environ(nil, p)
	assert.EqualError(t, err, "the variable BIG has 131076 bytes, but Linux allows at most 131071")
}

func TestTheLargestRunFits(t *testing.T) {
	p := process("chief-0")
	for i := 2; len(p.Cluster.Members) < 1000; i++ {
		m := p.Cluster.Members[1]
		m.Index, m.Rank, m.Address = i, i+3, "a-rather-long-host-name-0123456789.region.compute.internal:65535"
		p.Cluster.Members = append(p.Cluster.Members, m)
	}
	assert.Contains(t, environ(t, nil, p), "TF_CONFIG")
}

func TestClean(t *testing.T) {
	kept := []string{
		"PATH=/bin", "TERM=xterm", "CUDA_VISIBLE_DEVICES=0,1", "NCCL_DEBUG=INFO", "OMP_NUM_THREADS=2",
		"TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "GRPC_FAIL_FAST=use_caller", "TF_CPP_MIN_LOG_LEVEL=2", "RANKING=x",
		"OMPI_MCA_btl=tcp,self", "OMPI_ALLOW_RUN_AS_ROOT=1", "PMI_NO_FORK=1", "PMIX_MCA_gds=hash", "SLURM_JOB_ID=9",
		"SLURM_JOB_NODELIST=n[1-2]", "SLURM_ARRAY_TASK_ID=4", "SLURMD_NODENAME=n", "TORCHELASTIC_ENABLE_FILE_TIMER=1",
		"HOROVOD_TIMELINE=/t.json", "JAX_PLATFORMS=cpu", "EMPTY=", "DUP=1", "DUP=2", "X==y",
		"CLUSTERRUN_STATE_DIR=/state", "CLUSTERRUN_DEVSERVER=/bin/devserver",
	}
	stripped := []string{
		"CLUSTERRUN_RANK=1", "CLUSTERRUN_SOCKET=/s", "TEMPORAL_API_KEY=secret", "TEMPORAL_TLS_CLIENT_KEY_DATA=k",
		"TEMPORAL_ADDRESS=a:7233", "TEMPORAL_GRPC_META_AUTHORIZATION=b", "TF_CONFIG={}", "RANK=0", "MASTER_PORT=1",
		"TORCHELASTIC_RUN_ID=x", "JAX_COORDINATOR_ADDRESS=a:1", "SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_STEP_NODELIST=n", "SLURM_SRUN_COMM_PORT=1",
		"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_orte_hnp_uri=u", "PMI_RANK=1", "PMIX_NAMESPACE=n", "MV2_COMM_WORLD_RANK=1",
		"HOROVOD_RANK=0", "NOTIFY_SOCKET=/run/n", "LISTEN_FDS=1", "=odd", "noequals", "",
	}
	var base []string
	for i := range max(len(kept), len(stripped)) {
		if i < len(kept) {
			base = append(base, kept[i])
		}
		if i < len(stripped) {
			base = append(base, stripped[i])
		}
	}
	before := slices.Clone(base)
	assert.Equal(t, kept, Clean(base))
	assert.Equal(t, before, base, "the input is left alone")

	assert.Equal(t, []string{"RANK", "SLURM_PROCID"}, Ranks([]string{"RANK=0", "A=b", "TEMPORAL_ADDRESS=a", "LISTEN_FDS=1", "SLURM_PROCID=1"}))
	assert.Empty(t, Ranks([]string{"RANK=0", "CLUSTERRUN_TASK=worker-0"}), "of a task of ours")
}

func TestClusterAsJSON(t *testing.T) {
	c := twoHosts()
	b := must.Get(json.Marshal(c))(t)
	assert.Contains(t, string(b), `{"type":"evaluator","index":0,"rank":4,"host":"b","address":"10.0.0.2:2222","local_rank":0,"local_world_size":1,"host_index":1}`)
	assert.Contains(t, string(b), `"rpc_layer":"grpc","master_addr":"10.0.0.1","master_port":20001,"jax_port":20002,"hosts":2,"profiles":["tensorflow","torch","jax"]`)
	back := must.JSON[hostapi.Cluster](t, b)
	assert.Equal(t, *c, back)
}

// A value too long for a variable is omitted.
func TestLongTFConfig(t *testing.T) {
	p := process("worker-7")
	p.Cluster.Members = manyMembers(10_000)
	assert.NotContains(t, environ(t, nil, p), "TF_CONFIG")
	p.Env = map[string]string{"TF_CONFIG": "mine"}
	assert.Equal(t, "mine", environ(t, nil, p)["TF_CONFIG"])
}

// manyMembers returns n tasks, the first of them a chief.
func manyMembers(n int) hostapi.Members {
	m := hostapi.Members{{Type: "chief", Address: "h:2222"}}
	for i := range n - 1 {
		m = append(m, hostapi.Member{Type: "worker", Index: i, Rank: i + 1, Address: fmt.Sprintf("10.0.%d.7:%d", i/40, 20000+i)})
	}
	return m
}

func TestTheHookIsFirstInPythonPath(t *testing.T) {
	for _, c := range []struct {
		hook string
		env  map[string]string
		want any
	}{
		{"/s/hook", nil, "/s/hook"},
		{"/s/hook", map[string]string{"PYTHONPATH": "/a:/b"}, "/s/hook:/a:/b"},
		{"/s/hook", map[string]string{"PYTHONPATH": ""}, "/s/hook"},
		{"/s/hook", map[string]string{"PYTHONPATH": "/outer/" + HookPrefix + "12:/a"}, "/s/hook:/a"},
		{"", map[string]string{"PYTHONPATH": "/outer/" + HookPrefix + "12:/a"}, "/a"},
		{"", map[string]string{"PYTHONPATH": "/outer/" + HookPrefix + "12"}, nil},
		{"", map[string]string{"PYTHONPATH": ""}, ""},
		{"", nil, nil},
	} {
		p := process("worker-0")
		p.PythonHook, p.Env = c.hook, c.env
		got, set := environ(t, nil, p)["PYTHONPATH"]
		if c.want == nil {
			assert.False(t, set, "%v", c)
		} else {
			assert.Equal(t, c.want, got, "%v", c)
		}
	}
}

const cuda, hip = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"

// The devices assigned to a task override the host worker's, and the task's spec overrides them.
func TestVisibleDevices_MPR33(t *testing.T) {
	base := []string{cuda + "=0,1,2,3"}
	p := process("worker-1")
	assert.Equal(t, "0,1,2,3", environ(t, base, p)[cuda], "not shared out")

	p.Devices = map[string]string{cuda: "1,3"}
	assert.Equal(t, "1,3", environ(t, base, p)[cuda])
	p.Devices = map[string]string{cuda: ""}
	value, set := environ(t, base, p)[cuda]
	assert.True(t, set)
	assert.Empty(t, value, "it sees none")

	p.Devices = map[string]string{cuda: "1", hip: "1"}
	p.Env = map[string]string{cuda: "7"}
	got := environ(t, base, p)
	assert.Equal(t, "7", got[cuda])
	assert.NotContains(t, got, hip, "it would come first for AMD's runtime")
}

func TestThreadsOfBoundProcesses(t *testing.T) {
	const threads = "OMP_NUM_THREADS"
	p := process("worker-1")
	assert.Equal(t, "1", environ(t, nil, p)[threads])
	p.CPUs = 8
	assert.Equal(t, "8", environ(t, nil, p)[threads])
	assert.Equal(t, "3", environ(t, []string{threads + "=3"}, p)[threads])
	p.Cluster.Profiles = []spec.EnvProfile{spec.EnvJAX}
	assert.Equal(t, "8", environ(t, nil, p)[threads])
	p.Env = map[string]string{threads: "2"}
	assert.Equal(t, "2", environ(t, []string{threads + "=3"}, p)[threads])
}

// anything permits all secrets, like a host without a policy.
var anything = (*policy.Policy)(nil).Decide(policy.Request{}).Secrets

func TestSecretFromTheEnvironment(t *testing.T) {
	base := []string{"HF_TOKEN=s3cret=", "EMPTY=", "TEMPORAL_API_KEY=key", "CLUSTERRUN_WORKER_OPTIONS=x"}
	for name, want := range map[string]string{"HF_TOKEN": "s3cret=", "EMPTY": ""} {
		value, problem := Secret(base, spec.Source{FromEnv: name}, anything)
		require.Nil(t, problem)
		assert.Equal(t, want, value)
	}
	for name, want := range map[string]string{
		"MISSING":                   "from_env: the host worker's environment does not contain MISSING; start the host worker with it, or name another variable or a file",
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
	link := filepath.Join(dir, "link") // like Kubernetes mounts
	require.NoError(t, os.Symlink(file("target", "s3cret"), link))
	value, problem := Secret(nil, spec.Source{FromFile: link}, anything)
	require.Nil(t, problem)
	assert.Equal(t, "s3cret", value)

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		file("nul", "s3\x00cret"):                       "it contains a NUL byte, which variables cannot contain",
		file("empty", "\n"):                             "it is empty",
		file("large", strings.Repeat("x", maxVariable)): "it has 131072 bytes or more, which is too long for a variable",
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
	const notLent = ": the host's policy does not give it to this run; ask the host's owner to add it to secrets."
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
