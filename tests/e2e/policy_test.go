package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// policed is a server with a host worker. By the worker's policy, alice may run the program job.
type policed struct {
	*harness.Server
	t      *testing.T
	client client.Client
	worker *harness.Worker
	dir    string
	alice  ssh.Signer
}

const rules = `
allowed_signers: signers
audit: audit.log
rules:
  - signers: [alice@example.com]
    user: %s
    programs: [%s/job]
    directories: [%[2]s]
    env: [GREETING]
    requests: [restart]
`

func newPoliced(t *testing.T) *policed {
	t.Helper()
	for _, program := range []string{"ssh-keygen", "ssh-agent", "ssh-add"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here", program)
		}
	}
	s := harness.StartServer(t, "--headless")
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	require.NoError(t, os.Chmod(dir, 0o700)) // regardless of the umask
	g := &policed{Server: s, t: t, client: s.Client(), dir: dir}
	for _, name := range []string{"alice", "eve"} {
		g.command(nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", g.path(name))
	}
	private := must.Get(os.ReadFile(g.path("alice")))(t)
	g.alice = must.Get(ssh.ParsePrivateKey(private))(t)
	me := must.Get(user.Current())(t)
	g.write("signers", "alice@example.com "+string(ssh.MarshalAuthorizedKey(g.alice.PublicKey())))
	g.write("policy.yaml", fmt.Sprintf(rules, me.Username, dir))
	for _, name := range []string{"job", "evil"} {
		g.write(name, "#!/bin/sh\necho \"$CLUSTERRUN_RUN_ID $CLUSTERRUN_TASK\" >> \""+dir+"/ran-"+name+"\"\n[ \"$1\" != wait ] || exec sleep 600\n")
		require.NoError(t, os.Chmod(g.path(name), 0o700))
	}
	g.worker = s.StartWorker(t, "--policy", g.path("policy.yaml"))
	return g
}

func (g *policed) path(name string) string { return filepath.Join(g.dir, name) }

func (g *policed) write(name, text string) {
	g.t.Helper()
	require.NoError(g.t, os.WriteFile(g.path(name), []byte(text), 0o600))
}

func (g *policed) ran(name string) string {
	b, _ := os.ReadFile(g.path("ran-" + name))
	return string(b)
}

func (g *policed) command(env []string, argv ...string) string {
	g.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(g.t, err, "%v: %s", argv, out)
	return string(out)
}

// cli runs a command, and returns its exit code and output.
func (g *policed) cli(args ...string) (int, string) {
	g.t.Helper()
	code, stdout, stderr := g.CLI(g.t, args...)
	return code, stdout + stderr
}

func (g *policed) job(args ...string) *spec.RunSpec {
	return &spec.RunSpec{Command: append([]string{g.path("job")}, args...), Dir: g.dir, Tasks: []spec.TaskGroup{{Type: "worker"}}}
}

// byHand starts a run as any client of the server can.
func (g *policed) byHand(id string, s *spec.RunSpec) error {
	g.t.Helper()
	run := must.Get(g.client.ExecuteWorkflow(g.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: spec.TaskQueue}, spec.WorkflowType, s))(g.t)
	return run.Get(g.t.Context(), nil)
}

func (g *policed) sign(id string, s *spec.RunSpec, expires time.Duration) *spec.RunSpec {
	g.t.Helper()
	signature := must.Get(signatures.OfRun(id, s).Sign(g.alice, time.Now().Add(expires)))(g.t)
	signed := *s
	signed.Signature = signature
	return &signed
}

// audited returns the audit log's lines.
func (g *policed) audited() (entries []guard.Entry) {
	g.t.Helper()
	b := must.Get(os.ReadFile(g.path("audit.log")))(g.t)
	for line := range strings.Lines(string(b)) {
		e := must.JSON[guard.Entry](g.t, line)
		entries = append(entries, e)
	}
	return entries
}

func (g *policed) wasAudited(what, run, task, why string) bool {
	for _, e := range g.audited() {
		if e.What == what && e.Run == run && e.Task == task && strings.Contains(e.Why, why) {
			return true
		}
	}
	return false
}

// A host with a policy runs only what the policy allows, for known signers.
func TestHostRunsOnlyWhatItsPolicyAllows(t *testing.T) {
	t.Parallel()
	g := newPoliced(t)
	job := []string{"--dir", g.dir, "-n", "1", "--"}

	// Signed with a key from a file, and by a real agent.
	code, said := g.cli(append([]string{"run", "--remote", "--id", "by-file", "--sign=" + g.path("alice")}, append(job, g.path("job"))...)...)
	require.Zero(t, code, said)
	socket := filepath.Join(t.TempDir(), "agent")
	agent := harness.Start(t, g.dir, harness.Env(g.dir), "ssh-agent", "-D", "-a", socket)
	harness.Eventually(t, "the agent listens", func() bool {
		require.False(t, agent.Exited(), agent.Stderr())
		_, err := os.Stat(socket)
		return err == nil
	})
	withAgent := func(args ...string) (int, string) {
		p := harness.Start(t, g.dir, harness.Env(g.dir, "TEMPORAL_ADDRESS="+g.Address, "SSH_AUTH_SOCK="+socket), append([]string{harness.Clusterrun(t)}, args...)...)
		return p.ExitCode(), p.Stdout() + p.Stderr()
	}
	submit := append([]string{"submit", "--id", "by-agent", "--sign"}, append(job, g.path("job"))...)
	g.command([]string{"SSH_AUTH_SOCK=" + socket}, "ssh-add", "-q", g.path("alice"))
	code, said = withAgent(submit...)
	require.Zero(t, code, said)
	code, said = g.cli("wait", "by-agent")
	require.Zero(t, code, said)
	ran := "by-file worker-0\nby-agent worker-0\n"
	require.Equal(t, ran, g.ran("job"))
	assert.True(t, g.wasAudited("start", "by-agent", "worker-0", ""))

	// Refusals come before anything starts.
	for id, c := range map[string]struct {
		args []string
		want string
	}{
		"unsigned": {append(job, g.path("job")), "policy: worker-0, which is unsigned, on host host-a: no rule is for what is unsigned; sign it with `clusterrun submit --sign`"},
		"eve":      {append([]string{"--sign=" + g.path("eve")}, append(job, g.path("job"))...), "is not among the allowed signers"},
		"evil":     {append([]string{"--sign=" + g.path("alice")}, append(job, g.path("evil"))...), "rule 1 does not allow the program " + g.path("evil")},
		"env":      {append([]string{"--sign=" + g.path("alice"), "--env", "LD_PRELOAD=x"}, append(job, g.path("job"))...), "rule 1 does not let a spec set LD_PRELOAD"},
	} {
		code, said := g.cli(append([]string{"run", "--remote", "--id", id}, c.args...)...)
		assert.Equal(t, 2, code, id)
		assert.Contains(t, said, c.want, id)
		assert.True(t, g.wasAudited("refused", id, map[bool]string{false: "worker-0"}[id == "eve"], ""), id)
	}

	// Started by hand, with signatures of something else.
	signed := g.sign("mine", g.job(), time.Hour)
	changed := *signed
	changed.Command = []string{g.path("job"), "more"}
	for id, c := range map[string]struct {
		spec *spec.RunSpec
		want string
	}{
		"by-hand": {g.job(), "is unsigned"},
		"other":   {signed, "it is for another run ID or another spec"},
		"mine":    {&changed, "it is for another run ID or another spec"},
		"late":    {g.sign("late", g.job(), -time.Second), "it has expired at"},
		"by-file": {g.sign("by-hand", g.job(), time.Hour), "it is for another run ID"},
	} {
		assert.ErrorContains(t, g.byHand(id, c.spec), c.want, id)
	}
	require.NoError(t, g.byHand("mine", signed))
	assert.ErrorContains(t, g.byHand("mine", signed), "it was used before; sign again")
	ran += "mine worker-0\n"
	assert.Equal(t, ran, g.ran("job"))
	assert.Empty(t, g.ran("evil"))

	info := must.Get(os.Stat(g.path("audit.log")))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

// Requests to an allowed run are also checked against the policy: updates, and activities
// scheduled directly on the host's queue.
func TestHostHoldsRequestsAgainstItsPolicy(t *testing.T) {
	t.Parallel()
	g := newPoliced(t)
	s := g.job("wait")
	code, said := g.cli("submit", "--id", "r", "--sign="+g.path("alice"), "--dir", g.dir, "-n", "2", "--", g.path("job"), "wait")
	require.Zero(t, code, said)
	ran := func(n int) {
		t.Helper()
		harness.Eventually(t, "tasks have been started", func() bool { return strings.Count(g.ran("job"), "r worker") == n })
	}
	ran(2)

	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"unsigned": {[]string{"start", "r", "worker-2"}, "worker-2, which is unsigned, on host host-a: no rule is for what is unsigned"},
		"denied":   {[]string{"start", "--sign=" + g.path("alice"), "r", "worker-2", "--", g.path("evil")}, "rule 1 does not allow the program " + g.path("evil")},
		"unknown":  {[]string{"start", "--sign=" + g.path("eve"), "r", "worker-2"}, "is not among the allowed signers"},
		"signal":   {[]string{"signal", "r", "worker-0", "USR1"}, "the policy of host host-a does not allow it: rule 1 does not allow the request signal"},
		"stacks":   {[]string{"stacks", "r"}, "rule 1 does not allow the request stacks"},
	} {
		code, said := g.cli(c.args...)
		assert.NotZero(t, code, what)
		assert.Contains(t, said, c.want, what)
	}
	code, said = g.cli("start", "--sign="+g.path("alice"), "r", "worker-2")
	require.Zero(t, code, said)
	ran(3)
	code, said = g.cli("restart", "r", "worker-2")
	require.Zero(t, code, said)
	ran(4)
	code, said = g.cli("stop", "r", "worker-2")
	require.Zero(t, code, said)
	harness.Eventually(t, "it has ended", func() bool {
		return (&fixture{t: t, client: g.client}).state(g.client.GetWorkflow(t.Context(), "r", ""), "worker-2") == spec.TaskEnded
	})

	// The signed request that started it, repeated.
	var q spec.StartTaskRequest
	q.Task = "worker-3"
	signature := must.Get(signatures.OfStart("r", q).Sign(g.alice, time.Now().Add(time.Hour)))(t)
	start := func(q spec.StartTaskRequest) error {
		u, err := g.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: "r", UpdateName: spec.UpdateStartTask.Name, Args: []any{q}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			return err
		}
		return u.Get(t.Context(), nil)
	}
	q.Signature = signature
	changed := q
	changed.Command = []string{g.path("job"), "other"}
	assert.ErrorContains(t, start(changed), "it is for another run ID or another request")
	require.NoError(t, start(q))
	ran(5)
	code, said = g.cli("stop", "r", "worker-3")
	require.Zero(t, code, said)
	harness.Eventually(t, "it has ended", func() bool {
		return (&fixture{t: t, client: g.client}).state(g.client.GetWorkflow(t.Context(), "r", ""), "worker-3") == spec.TaskEnded
	})
	assert.ErrorContains(t, start(q), "it was used before; sign again")

	// By hand, on the host's queue.
	instance := supervisor.InstanceIn(filepath.Join(g.worker.State, "worker"))
	require.NotEmpty(t, instance)
	queue := spec.InstanceQueue(spec.TaskQueue, "host-a", instance)
	d := must.Get(g.client.DescribeWorkflowExecution(t.Context(), "r", ""))(t)
	execution := d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	evil := spec.Task{Type: "worker", Index: 9, Rank: 9, Command: []string{g.path("evil")}, Dir: g.dir}
	asSigned := evil
	asSigned.Signed = &q
	replaced := spec.Task{Type: "worker", Index: 1, Rank: 1, Command: []string{g.path("evil")}, Dir: g.dir}
	unsigned := s.WithDefaults()
	for what, c := range map[string]struct {
		activity string
		input    any
		want     string
	}{
		"reserve":            {hostapi.Name(hostapi.Host.Reserve), hostapi.ReserveInput{Spec: unsigned}, "is unsigned"},
		"reserve nothing":    {hostapi.Name(hostapi.Host.Reserve), hostapi.ReserveInput{}, "there is no spec"},
		"reserve no command": {hostapi.Name(hostapi.Host.Reserve), hostapi.ReserveInput{Spec: &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker"}}}}, "command: missing"},
		"start":              {hostapi.Name(hostapi.Host.RunTask), hostapi.RunTaskInput{Workflow: "r", Run: execution, Task: "worker-9", Added: &evil}, "exit code 126"},
		"start as signed":    {hostapi.Name(hostapi.Host.RunTask), hostapi.RunTaskInput{Workflow: "r", Run: execution, Task: "worker-9", Added: &asSigned}, "exit code 126"},
		"start another":      {hostapi.Name(hostapi.Host.RunTask), hostapi.RunTaskInput{Workflow: "r", Run: execution, Task: "worker-1", Launch: 5, Added: &replaced}, "exit code 126"},
		"no such run":        {hostapi.Name(hostapi.Host.RunTask), hostapi.RunTaskInput{Task: "worker-0"}, "its host worker has no record of the run"},
	} {
		assert.ErrorContains(t, g.activity("attack by "+what, queue, c.activity, c.input), c.want, what)
	}
	assert.Empty(t, g.ran("evil"))
	assert.True(t, g.wasAudited("refused", "r", "worker-9", "no rule is for what is unsigned"))
	assert.True(t, g.wasAudited("refused", "r", "worker-9", "the task differs from the one in the signed request"))
	assert.True(t, g.wasAudited("refused", "r", "worker-1", "no rule is for what is unsigned"))

	// A workflow makes requests that no clusterrun workflow makes, for a run signed by alice.
	signed := g.sign("by-alice", s, time.Hour).WithDefaults()
	other := g.sign("by-alice", g.job("other"), time.Hour).WithDefaults()
	cluster := hostapi.Cluster{RPCLayer: "grpc", MasterAddr: "evil.example", Members: []hostapi.Member{{Type: "worker", Address: "evil.example:1"}}}
	lines := len(g.audited())
	errs := g.activities("by-alice", queue,
		byHand{hostapi.Name(hostapi.Host.Reserve), hostapi.ReserveInput{Spec: signed}},
		byHand{hostapi.Name(hostapi.Host.Prepare), hostapi.PrepareInput{Cluster: cluster}},
		byHand{hostapi.Name(hostapi.Host.SignalTasks), signalling("worker-0")},
		byHand{hostapi.Name(hostapi.Host.SignalTasks), signalling("worker-5")},
		byHand{hostapi.Name(hostapi.Host.Reserve), hostapi.ReserveInput{Spec: other}},
		byHand{hostapi.Name(hostapi.Host.Reserve), hostapi.ReserveInput{Spec: other, Generation: 1}},
	)
	assert.Empty(t, errs[0])
	assert.Contains(t, errs[1], "the cluster differs from the run's spec")
	assert.Contains(t, errs[2], "rule 1 does not allow the request signal")
	assert.Contains(t, errs[3], "the run has no task worker-5 here")
	assert.Contains(t, errs[4], "this host knows the run with a different spec or different signers")
	assert.Contains(t, errs[5], "this host knows the run with a different spec or different signers")
	var refused []string
	for _, e := range g.audited()[lines:] {
		if e.Run == "by-alice" {
			refused = append(refused, e.What+" "+e.Asked)
		}
	}
	assert.Equal(t, []string{"refused signal", "refused signal", "refused reserve", "refused reserve"}, refused)
	assert.True(t, g.wasAudited("refused", "r", "worker-2", "rule 1 does not allow the program "+g.path("evil")))
	assert.True(t, g.wasAudited("refused", "r", "worker-0", "rule 1 does not allow the request signal"))
	assert.True(t, g.wasAudited("restart", "r", "worker-2", ""))
	assert.True(t, g.wasAudited("terminate", "r", "worker-2", ""))
}

func signalling(task string) spec.HostRequest[spec.SignalRequest] {
	return spec.HostRequest[spec.SignalRequest]{Request: spec.SignalRequest{Tasks: []string{task}, Signal: "SIGUSR1"}}
}

// byHand is an activity that no clusterrun workflow scheduled.
type byHand struct {
	Activity string
	Input    any
}

// activity schedules an activity from a test workflow, and returns its first failure.
func (g *policed) activity(workflowID, queue, name string, input any) error {
	g.t.Helper()
	if err := g.activities(workflowID, queue, byHand{name, input})[0]; err != "" {
		return errors.New(err)
	}
	return nil
}

// activities does the same for several activities in sequence. The message is empty on success.
func (g *policed) activities(workflowID, queue string, calls ...byHand) []string {
	g.t.Helper()
	w := worker.New(g.client, "by-hand-"+workflowID, worker.Options{DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) ([]string, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: queue, StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		errs := make([]string, len(calls))
		for i, c := range calls {
			var exit spec.Exit // of RunTask
			if err := workflow.ExecuteActivity(ctx, c.Activity, c.Input).Get(ctx, &exit); err != nil {
				errs[i] = err.Error()
			} else if exit.Cause != "" && !exit.OK() {
				errs[i] = fmt.Sprintf("exit code %d: %s", exit.ExitCode, exit.Message)
			}
		}
		return errs, nil
	}, workflow.RegisterOptions{Name: "Attack"})
	require.NoError(g.t, w.Start())
	defer w.Stop()
	run := must.Get(g.client.ExecuteWorkflow(g.t.Context(), client.StartWorkflowOptions{ID: workflowID, TaskQueue: "by-hand-" + workflowID}, "Attack"))(g.t)
	ctx, cancel := context.WithTimeout(g.t.Context(), 2*time.Minute)
	defer cancel()
	var errs []string
	require.NoError(g.t, run.Get(ctx, &errs))
	require.Len(g.t, errs, len(calls))
	return errs
}

// A start that cannot be logged is refused.
func TestStartThatCannotBeWrittenDownIsRefused(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.log")
	s.StartWorker(t, "--audit", audit)
	s.OK(t, "run", "--remote", "-n", "1", "--", "touch", filepath.Join(dir, "first"))
	require.NoError(t, os.Remove(audit))
	require.NoError(t, os.Mkdir(audit, 0o700))
	assert.Contains(t, s.Fails(t, 126, "run", "--remote", "-n", "1", "--", "touch", filepath.Join(dir, "second")), "the audit log cannot be written")
	assert.NoFileExists(t, filepath.Join(dir, "second"))
}
