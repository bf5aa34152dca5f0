package e2e

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fixture is a server with one host worker.
type fixture struct {
	*harness.Server
	worker *harness.Worker
	client client.Client
	t      *testing.T
	// mark is set in the environment of every process started by this test's runs.
	mark string
	dir  string
	// noted are the lines read so far from the file calls; see calls.
	noted map[string]int
	read  int
}

func newFixture(t *testing.T, serverArgs ...string) *fixture {
	t.Helper()
	return fixtureOn(t, harness.StartServer(t, append([]string{"--headless"}, serverArgs...)...))
}

// fixtureOn is a host worker with these flags on a server.
func fixtureOn(t *testing.T, s *harness.Server, workerArgs ...string) *fixture {
	t.Helper()
	return prepare(t, s, s.StartWorker(t, workerArgs...))
}

// prepare returns a fixture with its own directory and mark.
func prepare(t *testing.T, s *harness.Server, w *harness.Worker) *fixture {
	t.Helper()
	f := &fixture{Server: s, worker: w, t: t, client: s.Client(), dir: t.TempDir()}
	f.mark = "E2E_MARK=" + filepath.Base(filepath.Dir(f.dir)) + fmt.Sprint(os.Getpid())
	t.Cleanup(func() {
		for _, pid := range harness.Alive(f.mark) {
			t.Errorf("process %d outlived the test: %s", pid, harness.Cmdline(pid))
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	return f
}

// start runs the groups. The processes carry the mark.
func (f *fixture) start(s *spec.RunSpec) client.WorkflowRun {
	f.t.Helper()
	if s.Env == nil {
		s.Env = spec.Env{}
	}
	key, value, _ := strings.Cut(f.mark, "=")
	s.Env[key] = spec.Variable{Value: value}
	s.Env["DIR"] = spec.Variable{Value: f.dir}
	s.Dir = f.dir
	run, err := f.client.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
		ID: "run-" + filepath.Base(f.dir) + fmt.Sprint(time.Now().UnixNano()), TaskQueue: spec.TaskQueue,
	}, spec.WorkflowType, s)
	require.NoError(f.t, err)
	return run
}

func (f *fixture) result(run client.WorkflowRun) spec.RunResult {
	f.t.Helper()
	return harness.Result(f.t, run)
}

// alive waits until n of this test's processes are alive, and returns them.
func (f *fixture) alive(n int) []int {
	f.t.Helper()
	var pids []int
	harness.Eventually(f.t, fmt.Sprintf("%d processes live", n), func() bool {
		pids = harness.Alive(f.mark)
		return len(pids) == n
	})
	return pids
}

// file waits for a file written by a task and returns its content.
func (f *fixture) file(name string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	harness.Eventually(f.t, name+" is written", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
	b := must.Get(os.ReadFile(path))(f.t)
	return string(b)
}

func (f *fixture) update(run client.WorkflowRun, u fmt.Stringer, arg any) spec.RequestAnswer {
	f.t.Helper()
	answer := must.Get(f.tryUpdate(run, u, arg))(f.t)
	return answer
}

func (f *fixture) tryUpdate(run client.WorkflowRun, u fmt.Stringer, arg any) (spec.RequestAnswer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var answer spec.RequestAnswer
	h, err := f.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateName: u.String(), Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return answer, err
	}
	return answer, h.Get(ctx, &answer)
}

func task(r spec.RunResult, name string) spec.TaskResult {
	for _, t := range r.Tasks {
		if t.Name == name {
			return t
		}
	}
	return spec.TaskResult{}
}

// group is a task group of a bash script.
func group(typ string, count int, script string) spec.TaskGroup {
	return harness.Shell(typ, count, script)
}

func ptr[T any](v T) *T { return &v }

// takesLong skips a test that only `make test-long` runs, because similar tests exist, or tests of
// just its rule.
func takesLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-long runs it")
	}
}

func touch(t *testing.T, f *fixture, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), nil, 0o644))
}

// state queries a task's state.
func (f *fixture) state(run client.WorkflowRun, name string) spec.TaskState {
	f.t.Helper()
	v := must.Get(f.client.QueryWorkflow(context.Background(), run.GetID(), run.GetRunID(), spec.QueryStatus))(f.t)
	var s spec.Status
	require.NoError(f.t, v.Get(&s))
	for _, t := range s.Tasks {
		if t.Name == name {
			return t.State
		}
	}
	return ""
}

func after(s, sep string) string {
	_, rest, _ := strings.Cut(s, sep)
	return rest
}

// The programs start even where libc is missing or older than on the machine that built them.
func TestProgramsNeedNoLibc(t *testing.T) {
	for _, path := range []string{harness.Clusterrun(t), harness.Supervisor(t), harness.Devserver(t)} {
		program := must.Get(elf.Open(path))(t)
		needed := must.Get(program.ImportedLibraries())(t)
		assert.Empty(t, needed, path)
		for _, p := range program.Progs {
			assert.NotEqual(t, elf.PT_INTERP, p.Type, "%s needs a dynamic linker", path)
		}
		require.NoError(t, program.Close())
	}
}
