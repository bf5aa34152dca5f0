package e2e

import (
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
	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
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
		"unsigned": {append(job, g.path("job")), "policy: worker-0, which is unsigned, on host host-a: no rule applies to unsigned requests; sign it with `clusterrun submit --sign`"},
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
		"late":    {g.sign("late", g.job(), -time.Second), "it expired at"},
		"by-file": {g.sign("by-hand", g.job(), time.Hour), "it is for another run ID"},
	} {
		assert.ErrorContains(t, g.byHand(id, c.spec), c.want, id)
	}
	require.NoError(t, g.byHand("mine", signed))
	assert.ErrorContains(t, g.byHand("mine", signed), "it has been used before; sign again")
	ran += "mine worker-0\n"
	assert.Equal(t, ran, g.ran("job"))
	assert.Empty(t, g.ran("evil"))

	// Requests need their own permission.
	code, said = g.cli("submit", "--id", "r", "--sign="+g.path("alice"), "--dir", g.dir, "-n", "1", "--", g.path("job"), "wait")
	require.Zero(t, code, said)
	code, said = g.cli("start", "--sign="+g.path("alice"), "r", "worker-1")
	require.Zero(t, code, said)
	harness.Eventually(t, "both tasks run", func() bool { return strings.Count(g.ran("job"), "r worker") == 2 })
	code, said = g.cli("restart", "r", "worker-0")
	require.Zero(t, code, said)
	for want, args := range map[string][]string{
		"worker-2, which is unsigned, on host host-a: no rule applies to unsigned requests":     {"start", "r", "worker-2"},
		"the policy of host host-a does not allow it: rule 1 does not allow the request signal": {"signal", "r", "worker-0", "USR1"},
	} {
		code, said = g.cli(args...)
		assert.NotZero(t, code, args)
		assert.Contains(t, said, want)
	}
	assert.True(t, g.wasAudited("restart", "r", "worker-0", ""))
	assert.True(t, g.wasAudited("refused", "r", "worker-0", "rule 1 does not allow the request signal"))
	code, said = g.cli("stop", "--wait", "r")
	require.Zero(t, code, said)
	info := must.Get(os.Stat(g.path("audit.log")))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	// A start that cannot be logged is refused.
	ran = g.ran("job")
	require.NoError(t, os.Remove(g.path("audit.log")))
	require.NoError(t, os.Mkdir(g.path("audit.log"), 0o700))
	code, said = g.cli(append([]string{"run", "--remote", "--id", "unlogged", "--sign=" + g.path("alice")}, append(job, g.path("job"))...)...)
	assert.Equal(t, 126, code)
	assert.Contains(t, said, "cannot write the audit log")
	assert.Equal(t, ran, g.ran("job"))
}
