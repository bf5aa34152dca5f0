package extra

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// pytorchTests lists the files of PyTorch's launcher tests, in test/distributed, and the tests in
// them that do not apply here.
var pytorchTests = map[string][]notHere{
	"launcher/run_test.py": slices.Concat(ofTorchrun, []notHere{
		{why: byEtcd, tests: "test_launch_elastic_multiple_agents"},
		{why: startsNothing, tests: "test_init_method_tcp test_init_method_env"},
	}),
	"launcher/test_run.py":    ofTorchrun,
	"launcher/launch_test.py": nil,
	"launcher/api_test.py": {
		{why: patchesTheAgent, tests: "test_launch_elastic_agent_raise_exception test_launch_shutdown" +
			" test_rdzv_handler_shutdown_on_agent_signal test_rdzv_handler_shutdown_on_agent_error"},
		{why: byEtcd, tests: "test_launch_elastic_multiple_agents"},
		{why: startsNothing, tests: "test_get_entrypoint_name"},
	},
	"test_launcher.py": nil,
	"elastic/multiprocessing/api_test.py": {
		{why: startsNothing, tests: "test_is_failed test_get_failures test_from_value test_from_value_map test_from_str_bad_input" +
			" test_to_map test_validate_full_rank"},
		{why: "is about arguments that the function refuses before it starts anything", tests: "test_invalid_log_dir test_args_env_len_mismatch"},
		{why: "calls torch's own classes that start processes", tests: "test_multiprocessing_context_poll_raises_exception test_wrap_bad"},
		{why: "calls torch's own classes that start processes", tests: "test_wait_for_all_child_procs_to_exit", in: "2."},
		{why: "starts no process: it gives no arguments for any", tests: "test_function_with_tensor", in: "1."},
	},
	"elastic/multiprocessing/redirects_test.py":            {{why: "is of torch's functions that write the output of their own process to files"}},
	"elastic/multiprocessing/tail_log_test.py":             {{why: "is of torch's class that reads files of output"}},
	"elastic/multiprocessing/errors/api_test.py":           {{why: "is of torch's function that writes the error file of its own process"}},
	"elastic/multiprocessing/errors/error_handler_test.py": {{why: "is of torch's function that writes the error file of its own process"}},
}

// notHere maps reasons to the tests that do not apply.
type notHere struct {
	why string
	// tests names the methods. If it is empty, all tests of the file are meant.
	tests string
	// in is a prefix of torch versions. If it is empty, all versions with the tests are meant.
	in string
}

const (
	startsNothing   = "starts nothing by the launcher"
	patchesTheAgent = "has torch's agent, or its rendezvous, do something else; clusterrun is in place of both"
	byEtcd          = "has agents meet by a server of etcd; here they meet at one of them, and the tests of c10d apply"
)

var ofTorchrun = []notHere{
	{why: patchesTheAgent, tests: "test_launch_elastic_agent_raise_exception test_launch_shutdown"},
	{why: "patches torch.cuda in its own process; clusterrun counts the GPUs of the machine", tests: "test_nproc_gpu_launch_configurations"},
	{why: startsNothing, tests: "test_min_max_nodes_parse test_is_not_torchelastic_launched"},
}

// torchBuild describes the installed torch.
type torchBuild struct {
	Version      string
	WithoutLibuv bool
}

const askTorch = `import json, torch, torch.distributed as dist
without = False
try:
    dist.TCPStore("127.0.0.1", 0, 1, True, use_libuv=True)
except TypeError:
    pass  # it is older
except RuntimeError as e:
    without = "libuv" in str(e)
print(json.dumps({"Version": torch.__version__, "WithoutLibuv": without}))`

// PyTorch's launcher tests pass unchanged with clusterrun, which torch starts through
// testdata/pytorch. Each test that applies must pass and start clusterrun. Each other test must
// have a reason, and must not do both.
func TestPyTorch(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // where distributions install torch
	source := os.Getenv("CLUSTERRUN_PYTORCH_TESTS")
	if source == "" {
		t.Skip("CLUSTERRUN_PYTORCH_TESTS does not name the sources of PyTorch, which .ci/pytorch-tests gets")
	}
	out, err := exec.Command(python, "-c", askTorch).Output()
	if err != nil {
		t.Skip("PyTorch is not installed (Debian: python3-torch)")
	}
	torch := must.JSON[torchBuild](t, out)
	// The server starts before any test, so that it does not carry the mark.
	home, mark, server := t.TempDir(), fmt.Sprint("PYTORCH_MARK=", os.Getpid()), harness.StartServer(t, "--headless")
	shim := filepath.Join(harness.Root(), "tests/extra/testdata/pytorch")
	env := harness.Env(home, mark, "TEMPORAL_ADDRESS="+server.Address, "TMPDIR="+t.TempDir(), "PYTHONPATH="+shim, "PYTHONDONTWRITEBYTECODE=1", "CUDA_VISIBLE_DEVICES=-1", "CLUSTERRUN_BIN="+harness.Clusterrun(t))
	if torch.WithoutLibuv {
		env = append(env, "USE_LIBUV=0")
	}

	for _, file := range pytorchFiles(t, filepath.Join(source, "test/distributed")) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			all, known := pytorchTests[file]
			require.True(t, known, "it is not said whether these tests apply")
			if testing.Short() && file != "launcher/api_test.py" {
				t.Skip("each process takes seconds to import torch")
			}
			why := map[string]string{}
			for _, n := range all {
				if n.tests == "" {
					t.Skip("does not apply: it " + n.why)
				}
				for test := range strings.FieldsSeq(n.tests) {
					if strings.HasPrefix(torch.Version, n.in) {
						why[test] = n.why
					}
				}
			}
			run := func(args ...string) *harness.Process {
				argv := append([]string{python, filepath.Join(shim, "runtests.py"), filepath.Join(source, "test/distributed", file)}, args...)
				p := harness.Start(t, t.TempDir(), env, argv...)
				require.True(t, p.EndsWithin(20*time.Minute), "%s\n%s", p.Stdout(), p.Stderr()) // importing torch takes seconds
				require.Zero(t, p.ExitCode(), p.Stderr())
				return p
			}
			names := strings.Fields(run("list").Stdout())
			require.NotEmpty(t, names)
			for test := range why {
				assert.True(t, slices.ContainsFunc(names, func(name string) bool { return methodOf(name) == test }), "there is no %s", test)
			}
			outcomes := func(processes string, names ...string) (outcomes []pytorchOutcome) {
				for line := range strings.Lines(run(append([]string{processes}, names...)...).Stdout()) {
					told := must.JSON[pytorchOutcome](t, line)
					outcomes = append(outcomes, told)
				}
				return outcomes
			}
			for _, told := range outcomes("3", names...) {
				names = slices.DeleteFunc(names, func(name string) bool { return name == told.Name })
				t.Run(told.Name, func(t *testing.T) {
					if reason := why[methodOf(told.Name)]; reason != "" {
						assert.False(t, told.passed(), "it is said not to apply, since it %s, but it passes", reason)
						t.Skip("does not apply: it " + reason)
					}
					if !told.passed() {
						// A gloo thread may drop the last reference to a tensor after reporting its
						// work as done. If Python is exiting at that moment, it terminates the
						// thread at a point where the thread must not be unwound, which aborts the
						// process: "terminate called without an active exception".
						t.Logf("%s; once more", told)
						again := outcomes("1", told.Name)
						require.Len(t, again, 1)
						told = again[0]
					}
					assert.True(t, told.passed(), "%s", told)
				})
			}
			assert.Empty(t, names, "of these nothing is known")
		})
	}
	t.Cleanup(func() { assert.Empty(t, harness.Alive(mark), "processes that outlived the tests") })
}

type pytorchOutcome struct {
	Name, Outcome, Said, Output string
	// Calls reports whether clusterrun was started.
	Calls bool
}

func (o pytorchOutcome) String() string {
	return fmt.Sprintf("%s; started clusterrun: %t\n%s\n%s", o.Outcome, o.Calls, o.Said, o.Output)
}

func (o pytorchOutcome) passed() bool { return o.Outcome == "passed" && o.Calls }

// pytorchFiles returns the existing test files, including all that are known in this version of
// PyTorch.
func pytorchFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"test_launcher.py", "launcher", "elastic/multiprocessing"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(dir, pattern), func(path string, d fs.DirEntry, err error) error {
			name, _ := strings.CutSuffix(filepath.Base(path), ".py")
			if err == nil && d.IsDir() && name == "bin" {
				return fs.SkipDir // scripts started by the tests
			}
			if err == nil && !d.IsDir() && (strings.HasPrefix(name, "test_") || strings.HasSuffix(name, "_test")) {
				relative := must.Get(filepath.Rel(dir, path))(t)
				files = append(files, relative)
			}
			return err
		}))
	}
	for file := range pytorchTests {
		if file != "launcher/run_test.py" && file != "launcher/test_run.py" { // the same file, renamed
			assert.Contains(t, files, file)
		}
	}
	return files
}

// methodOf returns a test's method; its name also contains its class.
func methodOf(name string) string {
	_, method, _ := strings.Cut(name, ".")
	return method
}
