package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// withServers is a run with a chief, workers and parameter servers that answer.
func (f *fixture) withServers(s spec.RunSpec, workers, servers int) *chief {
	f.t.Helper()
	c := f.coordinated(s, f.serving("worker", workers), f.python("ps", servers, "closures/ps.py"))
	c.does(f.t, "servers_answer")
	return c
}

// kill kills a task's process for good, and waits until the run has noticed.
func (c *chief) kill(task string) {
	c.t.Helper()
	require.NoError(c.t, syscall.Kill(c.process(task), syscall.SIGKILL))
	c.awaitState(task, spec.TaskEnded)
}

// startAgain starts a task that was killed.
func (c *chief) startAgain(task string) {
	c.t.Helper()
	c.update(c.run, spec.UpdateStartTask, spec.StartTaskRequest{Task: task})
	c.process(task)
	if strings.HasPrefix(task, "ps-") {
		c.does(c.t, "servers_answer")
	}
}

func (c *chief) awaitState(task string, s spec.TaskState) {
	c.t.Helper()
	harness.Eventually(c.t, task+" is "+string(s), func() bool { return c.state(c.run, task) == s })
}

// If a parameter server is killed while functions need it, they report it and are called again,
// and then it becomes the coordinator's error.
func TestParameterServerFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// Nothing restarts automatically, and a task's death does not affect other tasks.
	c := f.withServers(spec.RunSpec{OnFailure: spec.OnFailureContinue}, 2, 2)
	all := []string{"worker-0", "worker-1"}
	assert.Equal(t, []any{6.0, 6.0}, c.does(t, "steps", "before", 6))

	t.Run("CC-80 CC-86 join raises it", func(t *testing.T) {
		c.does(t, "begin_endless", "cc76", 6)
		c.kill("ps-0")
		c.does(t, "join_raises_unavailable")
		c.does(t, "every_worker_says_so", all, "ps-0")
	})
	t.Run("a resource", func(t *testing.T) {
		c.does(t, "a_resource_needs_a_server")
		c.startAgain("ps-0")
		c.does(t, "the_resource_is_built_again")
	})
	t.Run("CC-77 CC-81 CC-85 schedule raises it", func(t *testing.T) {
		c.does(t, "begin_endless", "cc77", 2)
		c.kill("ps-0")
		c.does(t, "schedule_raises_unavailable")
	})
	t.Run("CC-78 all servers are gone", func(t *testing.T) {
		c.kill("ps-1")
		c.does(t, "every_worker_says_so", all, "ps-0", "ps-1")
		c.update(c.run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "ps-0"})
		c.startAgain("ps-1")
		c.does(t, "steps", "after", 6)
	})
	t.Run("CC-71 together with a worker", func(t *testing.T) {
		c.does(t, "begin_endless", "cc71", 6)
		worker, server := c.process("worker-0"), c.process("ps-0")
		require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
		require.NoError(t, syscall.Kill(server, syscall.SIGKILL))
		c.does(t, "join_raises_unavailable")
		c.awaitState("worker-0", spec.TaskEnded)
		c.startAgain("worker-0")
		c.awaitState("ps-0", spec.TaskEnded)
		c.startAgain("ps-0")
		c.does(t, "steps", "together", 6)
	})
	c.checkHealth(t)
	c.succeeds() // those that failed were started again
}

// CC-83: if a parameter server is removed and the chief does not handle the error, the run fails
// with it. SEED-56: or the run exits with the exit code set in the environment.
func TestTheErrorOfAParameterServerIsThatOfTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	end := func(name string, s spec.RunSpec) spec.RunResult {
		f.dir = t.TempDir() // each chief has separate files
		c := f.withServers(s, 1, 1)
		c.does(t, "begin_endless", name, 1)
		c.update(c.run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"ps-0"}})
		c.tell("raise")
		return c.result(c.run)
	}
	r := end("cc83", spec.RunSpec{})
	assert.Equal(t, spec.VerdictFailed, r.Verdict)
	assert.Contains(t, r.Message, "chief-0 reported an error: UnavailableError: ps-0 at ")
	assert.Equal(t, "chief-0", r.FirstFailure.Task)

	r = end("seed56", spec.RunSpec{Env: spec.EnvOf(map[string]string{"TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE": "42"})})
	assert.Equal(t, spec.VerdictFailed, r.Verdict)
	assert.Equal(t, 42, r.ExitCode)
	assert.Contains(t, r.FirstFailure.Message, "A parameter server does not answer, and the program ends with exit code 42: ps-0 at ")
}

// A worker is killed while the parameter servers are alive.
func TestWorkerFailuresWithParameterServers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.withServers(spec.RunSpec{AutoRestart: true}, 2, 1)
	c.does(t, "steps", "before", 2)
	t.Run("CC-66 CC-67 CC-75 the type of error", func(t *testing.T) {
		c.does(t, "pinned_calls", "cc66")
		require.NoError(t, syscall.Kill(c.process("worker-0"), syscall.SIGKILL))
		c.does(t, "pinned_calls_end")
	})
	t.Run("CC-74 reading goes on", func(t *testing.T) {
		assert.GreaterOrEqual(t, c.does(t, "reads_go_on", "cc74"), 10.0)
	})
	t.Run("CC-68 a server that returns is no error", func(t *testing.T) {
		c.does(t, "begin_endless", "cc68", 2)
		before := c.process("ps-0")
		require.NoError(t, syscall.Kill(before, syscall.SIGKILL))
		c.does(t, "a_server_returns", "cc68")
		assert.NotEqual(t, before, c.process("ps-0"))
	})
	c.succeeds()
}

// squaresCalled waits until n squares were called, counting each once.
func (c *chief) squaresCalled(from, n int) {
	c.t.Helper()
	s := &squares{f: c.fixture, from: from, values: make([]*clustercoordinator.RemoteValue, 2*n)}
	s.awaitCalled(n)
}

// executions checks a chief's report on many closures.
func executions(t *testing.T, closures int, said any) int {
	t.Helper()
	t.Logf("%d closures, %v executions", closures, said)
	assert.GreaterOrEqual(t, said, float64(closures))
	return int(said.(float64))
}

const amidst, slowly = 400, 0.01

// If the chief dies amid closures that it scheduled, each is called once, and every value is
// fetched.
func TestPythonChiefFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, f.serving("worker", 3))
	t.Run("the chief", func(t *testing.T) {
		done := c.tell("many", "chief", 10_000, amidst, slowly)
		for round := range 2 {
			c.squaresCalled(10_000, (round+1)*amidst/4)
			chief := c.process("chief-0")
			require.NoError(t, syscall.Kill(chief, syscall.SIGKILL))
			harness.Eventually(t, "there is another chief", func() bool { return c.process("chief-0") != chief })
		}
		assert.Equal(t, amidst, executions(t, amidst, done(t)), "what another chief has scheduled is not called again")
	})
	t.Run("CC-84 nothing", func(t *testing.T) {
		assert.Equal(t, amidst, executions(t, amidst, c.does(t, "many", "nothing", 30_000, amidst, 0)))
	})
	f.checkQueue(f.coordinator(c.run), 2*amidst)
	c.succeeds()
}
