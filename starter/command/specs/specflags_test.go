package specs

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// specFrom returns the spec for a command line, as read by validate.
func specFrom(t *testing.T, stdin string, args ...string) (*spec.RunSpec, error) {
	t.Helper()
	var out *spec.RunSpec
	var failure error
	f := &SpecFlags{}
	cmd := &cobra.Command{Use: "validate", RunE: func(cmd *cobra.Command, args []string) error {
		src, err := ParseSource(cmd, args)
		if err == nil {
			out, err = src.Read(strings.NewReader(stdin), f)
		}
		failure = err
		return nil
	}}
	cmd.Flags().SetInterspersed(false)
	f.Register(cmd.Flags())
	root := &cobra.Command{Use: "clusterrun"}
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"validate"}, args...))
	require.NoError(t, root.Execute())
	return out, failure
}

// All flags named in the spec's reference exist.
func TestReferenceNamesFlags(t *testing.T) {
	f := &SpecFlags{}
	f.Register(pflag.NewFlagSet("run", pflag.ContinueOnError))
	names := regexp.MustCompile(`\s--?([a-zA-Z][a-z-]*)[,.]`).FindAllStringSubmatch(spec.Reference(), -1)
	require.Greater(t, len(names), len(spec.Flags()))
	for _, name := range names {
		known := f.Flags.Lookup(name[1])
		if len(name[1]) == 1 {
			known = f.Flags.ShorthandLookup(name[1])
		}
		assert.NotNil(t, known, name[0])
	}
}

func ptr[T any](v T) *T { return &v }

func ranks(n int) []spec.TaskGroup { return []spec.TaskGroup{{Type: "worker", Count: &n}} }

func TestFlagsMakeASpec(t *testing.T) {
	s, err := specFrom(t, "",
		"--task", "chief=1", "--task", "worker=3", "--task", "ps=localhost:2222,localhost:2223",
		"--name", "iris", "--dir", "/srv", "--env", "A=B=C", "--env", "D=", "--set", "unset_env=[LD_PRELOAD, NCCL_*]", "--set", "rpc_layer=grpc+loas",
		"--set", "env_profiles=[torch,jax]", "--on-failure", "continue", "--max-restarts", "3", "--set", "dependence_on_chief=false",
		"--set", "chief_grace=0s", "--timeout", "1h30m", "--set", "max_run_time=2h", "--set", "placement_timeout=5s", "--set", "barriers=local",
		"--set", "stop.signal=SIGINT", "--grace", "1s", "--set", "stop_together.grace=0s", "--set", "stop_together.clean_errors=[EndOfData, io.EOF]",
		"--set", "closures.queue_size=0",
		"--log-dir", "/logs", "--set", "logs.redirects=0:3", "--tee", "0",
		"--set", "logs.local_ranks_filter=[0, 1]", "--log-prefix", "{{.Rank}}", "--set", "return_output=true",
		"--", "python3", "train.py", "--epochs=3")
	require.NoError(t, err)
	assert.Equal(t, &spec.RunSpec{
		Name:    "iris",
		Command: []string{"python3", "train.py", "--epochs=3"},
		Tasks: []spec.TaskGroup{
			{Type: "chief", Count: ptr(1)}, {Type: "worker", Count: ptr(3)},
			{Type: "ps", Addresses: []string{"localhost:2222", "localhost:2223"}},
		},
		Dir: "/srv", Env: spec.EnvOf(map[string]string{"A": "B=C", "D": ""}), UnsetEnv: []string{"LD_PRELOAD", "NCCL_*"}, RPCLayer: "grpc+loas",
		EnvProfiles: []spec.EnvProfile{spec.EnvTorch, spec.EnvJAX},
		OnFailure:   spec.OnFailureContinue, AutoRestart: true, MaxRestarts: ptr(3), DependenceOnChief: ptr(false),
		ChiefGrace: spec.DurationOf(0), Timeout: spec.DurationOf(90 * time.Minute), MaxRunTime: spec.DurationOf(2 * time.Hour),
		PlacementTimeout: spec.DurationOf(5 * time.Second), Barriers: spec.BarriersLocal,
		Stop:         spec.Stop{Signal: "SIGINT", Grace: spec.DurationOf(time.Second)},
		StopTogether: spec.StopTogether{Grace: spec.DurationOf(0), CleanErrors: []string{"EndOfData", "io.EOF"}},
		Closures:     spec.Closures{QueueSize: ptr(0)},
		Logs:         spec.Logs{Dir: "/logs", Redirects: "0:3", Tee: "0", LocalRanksFilter: []int{0, 1}, Prefix: ptr("{{.Rank}}")},
		ReturnOutput: true,
	}, s)
}

// For torchrun, the number of restarts counts restarts of the whole group.
func TestRestartsInTorchrunsWords(t *testing.T) {
	for _, test := range []struct {
		args  []string
		scope spec.RestartScope
		auto  bool
	}{
		{[]string{"--nproc-per-node", "2", "--max-restarts", "3"}, spec.RestartScopeGroup, false},
		{[]string{"--nnodes", "1", "--nproc-per-node", "2", "--max-restarts", "0"}, "", false},
		{[]string{"--nnodes", "1:2", "--nproc-per-node", "2"}, spec.RestartScopeGroup, false},
		{[]string{"--nproc-per-node", "2", "--max-restarts", "3", "--restart-scope", "task"}, spec.RestartScopeTask, true},
		{[]string{"-n", "2", "--max-restarts", "3"}, "", true},
		{[]string{"-n", "2", "--max-restarts", "3", "--restart-scope", "group"}, spec.RestartScopeGroup, false},
	} {
		s := must.Get(specFrom(t, "", append(test.args, "./train")...))(t)
		assert.Equal(t, test.scope, s.RestartScope, test.args)
		assert.Equal(t, test.auto, s.AutoRestart, test.args)
	}
}

// An empty list of clean errors means none; without it the default applies.
func TestNoCleanErrors(t *testing.T) {
	s := must.Get(specFrom(t, "", "--set", "stop_together.clean_errors=[]", "--", "./train"))(t)
	assert.Equal(t, []string{}, s.WithDefaults().StopTogether.CleanErrors)
	_, err := specFrom(t, "", "--set", "stop_together.clean_errors", "--set", "stop.grce=1s", "--set", "limits.nofile=many", "--", "./train")
	for _, problem := range []string{`--set "stop_together.clean_errors": write FIELD=VALUE`, "--set stop.grce: not a field of stop", "--set limits.nofile: must be a whole number"} {
		require.ErrorContains(t, err, problem)
	}
}

// An empty list of profiles selects none, as in a file.
func TestNoProfiles(t *testing.T) {
	s := must.Get(specFrom(t, "", "--set", "env_profiles=[]", "--", "./train"))(t)
	assert.Equal(t, []spec.EnvProfile{}, s.WithDefaults().EnvProfiles)
}

// A problem with a list item names the item's flag.
func TestProblemsNameTheFlag(t *testing.T) {
	_, err := specFrom(t, "", "--exclude", "", "--set", "env_profiles=[x]", "--on-disconnect", "1s", "--", "./train")
	for _, flag := range []string{"--exclude: is empty", `env_profiles[0]: "x" is no`, "--on-disconnect: must be at least 5s"} {
		require.ErrorContains(t, err, flag)
	}
}

// Fields that no flag sets keep the spec's defaults.
func TestNoFlags(t *testing.T) {
	s := must.Get(specFrom(t, "", "./train"))(t)
	assert.Equal(t, &spec.RunSpec{Name: "train", Command: []string{"./train"}, Tasks: ranks(1)}, s)
}

func TestHowManyTasks(t *testing.T) {
	for line, want := range map[string]int{
		"-n 4 x":                             4,
		"-n4 x":                              4,
		"--np=4 x":                           4,
		"-n 4 x -n 9":                        4,
		"--nproc-per-node 3 x":               3,
		"--nproc-per-node cpu --nnodes 1 x":  runtime.NumCPU(),
		"--nnodes 1:1 --nproc-per-node=2 x":  2,
		"-n 2 --nproc-per-node 2 x":          2,
		"-H localhost:3 x":                   3,
		"-n 2 -H localhost:3,127.0.0.1 x":    2,
		"-H localhost,localhost,localhost x": 3,
	} {
		t.Run(line, func(t *testing.T) {
			s := must.Get(specFrom(t, "", strings.Fields(line)...))(t)
			assert.Equal(t, ranks(want), s.Tasks)
			assert.Equal(t, "x", s.Command[0])
		})
	}
}

const threeTypes = `
command: [python3, train.py]
auto_restart: true
max_restarts: 2
stop: {grace: 5s}
tasks:
  - {type: chief}
  - {type: worker, count: 2, args: [--fast], env: {A: B}}
`

func TestFlagsOverAFile(t *testing.T) {
	s := must.Get(specFrom(t, threeTypes, "--task", "worker=5", "--task", "ps=1", "--max-restarts", "0", "--auto-restart=false", "--set", "stop.signal=SIGINT", "-"))(t)
	assert.Equal(t, []spec.TaskGroup{
		{Type: "chief"},
		{Type: "worker", Count: ptr(5), Args: []string{"--fast"}, Env: spec.EnvOf(map[string]string{"A": "B"})},
		{Type: "ps", Count: ptr(1)},
	}, s.Tasks)
	assert.False(t, s.AutoRestart)
	assert.Equal(t, ptr(0), s.MaxRestarts)
	assert.Equal(t, spec.Stop{Signal: "SIGINT", Grace: spec.DurationOf(5 * time.Second)}, s.Stop)
	assert.Equal(t, "train", s.Name, "a pipe has no name, its program does")
}

func TestACommandOverAFile(t *testing.T) {
	s := must.Get(specFrom(t, `{"worker": ["localhost:1", "localhost:2"], "chief": ["localhost:3"]}`, "-", "--", "./train", "--help"))(t)
	assert.Equal(t, []string{"./train", "--help"}, s.Command)
	assert.Equal(t, "chief", s.Tasks[0].Type)
	assert.Equal(t, "worker", s.Tasks[1].Type)
}

func TestRelativePathsAreOfTheCaller(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := must.Get(specFrom(t, `{"command": ["x"], "dir": "job", "logs": {"dir": "out"}, "tasks": [{"type": "worker", "dir": "w", "overrides": {"0": {"dir": "zero"}}}]}`, "-"))(t)
	assert.Equal(t, dir+"/job", s.Dir)
	assert.Equal(t, dir+"/out", s.Logs.Dir)
	assert.Equal(t, dir+"/w", s.Tasks[0].Dir)
	assert.Equal(t, dir+"/zero", s.Tasks[0].Overrides["0"].Dir)
}

func TestProblemsOfFlagsAndFileComeTogether(t *testing.T) {
	_, err := specFrom(t, threeTypes, "--max-restarts", "-1", "--env", "A", "-n", "3", "-")
	var usage *cli.UsageError
	require.ErrorAs(t, err, &usage)
	assert.Equal(t, "the spec on stdin", usage.About)
	require.Len(t, usage.Problems, 3)
	assert.Contains(t, usage.Problems[0], "specify which with --task chief=3 or --task worker=3")
	assert.Contains(t, usage.Problems[1], `--env "A"`)
	assert.Contains(t, usage.Problems[2], "--max-restarts: must be at least 0")
}

func TestSpecOrCommand(t *testing.T) {
	for line, want := range map[string]Source{
		"run.yaml":            {File: "run.yaml"},
		"run.json":            {File: "run.json"},
		"-":                   {File: "-"},
		"run.yml -- a b":      {File: "run.yml", Command: []string{"a", "b"}},
		"run.yaml a":          {Command: []string{"run.yaml", "a"}},
		"-- run.yaml":         {Command: []string{"run.yaml"}},
		"-- run.yaml -- b":    {Command: []string{"run.yaml", "--", "b"}},
		"train":               {Command: []string{"train"}},
		"python3 x.yaml -- b": {Command: []string{"python3", "x.yaml", "--", "b"}},
	} {
		t.Run(line, func(t *testing.T) {
			var got Source
			cmd := &cobra.Command{Use: "run", RunE: func(cmd *cobra.Command, args []string) (err error) {
				got, err = ParseSource(cmd, args)
				return err
			}}
			cmd.Flags().SetInterspersed(false)
			cmd.SetArgs(strings.Fields(line))
			require.NoError(t, cmd.Execute())
			assert.Equal(t, want, got)
		})
	}
}

func TestNames(t *testing.T) {
	for line, want := range map[string]string{
		"python3 train.py --epochs 3":     "train",
		"python3 -u train.py":             "train",
		"/usr/bin/python3 /srv/My Job.py": "myjob",
		"bash -c exit":                    "bash",
		"env A=B ./Worker":                "worker",
		"./x-1_y":                         "x-1_y",
		"./-":                             "",
	} {
		s := Source{Command: splitOnce(line)}
		assert.Equal(t, want, s.name(&spec.RunSpec{Command: s.Command}), line)
	}
	assert.Equal(t, "iris", Source{File: "/specs/iris.yaml"}.name(&spec.RunSpec{}))
}

// splitOnce keeps the space in "My Job.py".
func splitOnce(line string) []string {
	fields := strings.Fields(strings.ReplaceAll(line, "My Job", "My\x00Job"))
	for i := range fields {
		fields[i] = strings.ReplaceAll(fields[i], "\x00", " ")
	}
	return fields
}

func TestThisMachine(t *testing.T) {
	own := must.Get(os.Hostname())(t)
	for _, name := range []string{"localhost", "127.0.0.1", "127.3.2.1", "::1", own} {
		assert.True(t, IsThisMachine(name), name)
	}
	for _, name := range []string{"elsewhere.example", "192.0.2.1"} {
		assert.False(t, IsThisMachine(name), name)
	}
}

func TestTakers(t *testing.T) {
	var hosts []fleet.HostStatus
	for name, state := range map[string]fleet.HostState{"a": fleet.HostDraining, "b": fleet.HostReady, "c": fleet.HostReady, "d": fleet.HostReady} {
		hosts = append(hosts, fleet.HostStatus{Host: fleet.Host{Name: name}, State: state})
	}
	var names []string
	for _, h := range takers(hosts, []string{"d", "c"}) {
		names = append(names, h.Name)
	}
	assert.Equal(t, []string{"d", "c", "b", "a"}, names)
}

func TestNodesInTorchrunsWords(t *testing.T) {
	s := must.Get(specFrom(t, "", "--nnodes", "2:4", "--nproc-per-node", "3", "--set", "elastic.join_wait=5s", "--set", "elastic.grow=next-generation", "./train"))(t)
	assert.Equal(t, &spec.RunSpec{
		Name: "train", Command: []string{"./train"}, Tasks: ranks(12), Hosts: spec.Hosts{Count: "2:4", PerHost: ptr(3)},
		Elastic:      spec.Elastic{JoinWait: ptr(spec.Duration(5e9)), Grow: spec.GrowNextGeneration},
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(0),
	}, s)
	s = must.Get(specFrom(t, "", "--nnodes", "3", "./train"))(t)
	assert.Equal(t, &spec.RunSpec{Name: "train", Command: []string{"./train"}, Tasks: ranks(3), Hosts: spec.Hosts{Count: "3"}}, s)
	s = must.Get(specFrom(t, "{tasks: [{type: worker, count: 8}], max_restarts: 2, restart_scope: group}", "--nnodes", "2:4", "-", "--", "./train"))(t)
	assert.Equal(t, &spec.RunSpec{
		Name: "train", Command: []string{"./train"}, Tasks: ranks(8), Hosts: spec.Hosts{Count: "2:4"},
		RestartScope: spec.RestartScopeGroup, MaxRestarts: ptr(2),
	}, s)
}

func TestNodesThatCannotBe(t *testing.T) {
	for want, args := range map[string][]string{
		`--nnodes "4:2": use a number of hosts`:                                  {"--nnodes", "4:2"},
		`--nnodes "two": use a number of hosts`:                                  {"--nnodes", "two"},
		`--nnodes "0:2": use a number of hosts`:                                  {"--nnodes", "0:2"},
		"--nnodes 1:2 does not match the 2 hosts":                                {"--nnodes", "1:2", "-H", "a,b"},
		"--nnodes 2 and --hosts 3 contradict each other":                         {"--nnodes", "2", "--hosts", "3"},
		"--nproc-per-node gpu: a queue's hosts may differ":                       {"--nnodes", "2", "--nproc-per-node", "gpu"},
		"-n 5 and --nproc-per-node 2 on 4 hosts contradict":                      {"--nnodes", "2:4", "-n", "5", "--nproc-per-node", "2"},
		"hosts.count: 5 tasks cannot be divided evenly among up to 4 hosts":      {"--nnodes", "2:4", "-n", "5"},
		"restart_scope: a run on 2:4 hosts restarts all tas":                     {"--hosts", "2:4", "-n", "4"},
		"elastic.join_wait: has no effect unless the number of hosts is a range": {"--nnodes", "2", "--set", "elastic.join_wait=1s"},
	} {
		_, err := specFrom(t, "", append(args, "./train")...)
		require.ErrorContains(t, err, want)
	}
}

func TestNProc(t *testing.T) {
	with, without := Machine{Gpus: 3, Cpus: 16}, Machine{Cpus: 16}
	for _, c := range []struct {
		id, text string
		machine  Machine
		want     int
	}{
		{"TR-06", "auto", without, 16},
		{"TR-07", "4", with, 4},
		{"TR-09", "auto", with, 3},
		{"TR-09", "gpu", with, 3},
		{"", "cpu", with, 16},
	} {
		n, err := ParseNProc(c.text, c.machine)
		require.NoError(t, err, c.id)
		assert.Equal(t, c.want, n, c.id)
	}
	for _, c := range []struct {
		text    string
		machine Machine
		want    string
	}{
		{"unknown", with, `--nproc-per-node "unknown": use a number, gpu, cpu or auto`}, // TR-08
		{"gpu", without, "--nproc-per-node gpu: no GPU is visible on this machine; use a number, or auto or cpu"},
		{"gpu", Machine{Cpus: 16, LimitedBy: "CUDA_VISIBLE_DEVICES"}, "--nproc-per-node gpu: CUDA_VISIBLE_DEVICES hides all GPUs; change it, or use a number"},
	} {
		_, err := ParseNProc(c.text, c.machine)
		assert.EqualError(t, err, c.want)
	}
}

// A shell's own choice of GPUs counts.
func TestNProcHere(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
	s := must.Get(specFrom(t, "", "--nproc-per-node", "gpu", "x"))(t)
	assert.Equal(t, ranks(2), s.Tasks)
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	_, err := specFrom(t, "", "--nproc-per-node", "gpu", "x")
	assert.ErrorContains(t, err, "CUDA_VISIBLE_DEVICES hides all GPUs")
}
