package activities

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// policedHost returns a host with that policy, and alice's key.
func policedHost(t *testing.T, rules string) (*Host, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key := must.Get(ssh.NewSignerFromKey(private))(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700)) // regardless of the umask
	file := filepath.Join(dir, "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("allowed_signers: signers\nrules: "+rules), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "signers"), append([]byte("alice "), ssh.MarshalAuthorizedKey(key.PublicKey())...), 0o600))
	h := assemble(&core{Config: Config{Name: "a", StateDir: dir, Guard: guard.New(file, "", dir), Log: zap.NewNop()}, shipped: shipped.Open(dir)})
	return h, key
}

func TestHostTakesAnElasticRunOfFewerTasks(t *testing.T) {
	h, key := policedHost(t, "[{signers: [alice], user: root}]")
	s := &spec.RunSpec{
		Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(4)}},
		Hosts: spec.Hosts{Count: "2:4"}, RestartScope: spec.RestartScopeGroup,
	}
	run := runkey.Run{Namespace: "default", WorkflowID: "r", RunID: "1"}
	signature := must.Get(signatures.OfRun("r", s).Sign(key, time.Now().Add(time.Hour)))(t)
	signature.Size = 4
	s.Signature = signature
	sized := s.WithDefaults().Sized(3)
	by, problems := h.gate.admit(run, hostapi.ReserveInput{Spec: sized}, sized.TaskList())
	assert.Empty(t, problems)
	assert.Equal(t, []string{"alice"}, by.signers)
	more := s.WithDefaults()
	more.Tasks[0].Count = new(8)
	_, problems = h.gate.admit(run, hostapi.ReserveInput{Spec: more}, more.TaskList())
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].Message, "another spec")
}

func TestPolicyIsAskedAboutWhereLinksLead(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	ships := filepath.Join(dir, "ships")
	require.NoError(t, os.MkdirAll(filepath.Join(ships, "src"), 0o700))
	require.NoError(t, os.Symlink("/etc", filepath.Join(ships, "out")))
	s := &spec.RunSpec{}
	of := func(s *spec.RunSpec, dir, program string) (string, string) {
		r := PolicyRequest(s, spec.Task{Dir: dir, Command: []string{program}}, ships, nil)
		return r.Directories[0], r.Program
	}
	at, program := of(s, filepath.Join(dir, "link", "new"), filepath.Join(dir, "link", "program"))
	assert.Equal(t, "/etc/new", at)
	assert.Equal(t, "/etc/program", program)
	require.NoError(t, os.Symlink("python3.12", filepath.Join(dir, "python3")))
	_, program = of(s, dir, "./python3")
	assert.Equal(t, filepath.Join(dir, "python3"), program, "a program that is a link has its own name")
	s.Ship.Archive = &spec.Archive{}
	at, program = of(s, "src", "./train")
	assert.Equal(t, "ship:/src", at)
	assert.Equal(t, "ship:/src/train", program)
	at, _ = of(s, "", "train")
	assert.Equal(t, "ship:/", at)
	at, program = of(s, "out", "./escaped")
	assert.Equal(t, "/etc", at)
	assert.Equal(t, "/etc/escaped", program)
	r := PolicyRequest(s, spec.Task{}, ships, nil)
	assert.Empty(t, r.Program)
}

// The kernel resolves .. from the target of a link, not from the link.
func TestPolicyFollowsNoPathThatGoesUp(t *testing.T) {
	h, _ := policedHost(t, "[{signers: [unsigned], user: root, programs: [/opt/jobs/selftest], directories: [/srv]}]")
	ships := t.TempDir()
	deep := filepath.Join(ships, "a", "b", "c", "d", "e", "f")
	require.NoError(t, os.MkdirAll(filepath.Join(ships, "a", "opt", "jobs"), 0o700))
	require.NoError(t, os.MkdirAll(deep, 0o700))
	require.NoError(t, os.Symlink(deep, filepath.Join(ships, "link")))
	up := strings.Repeat("/..", strings.Count(ships, "/")+1)
	job := []string{"/opt/jobs/selftest"}
	decide := func(task spec.Task, logs string) policy.Decision {
		return h.Guard.Decide(PolicyRequest(&spec.RunSpec{Logs: spec.Logs{Dir: logs}}, task, ships, nil))
	}
	for want, d := range map[string]policy.Decision{
		"command[0] ": decide(spec.Task{Dir: "/srv", Command: []string{ships + "/link" + up + "/opt/jobs/selftest"}}, ""),
		"dir ":        decide(spec.Task{Dir: ships + "/link" + up + "/srv", Command: job}, ""),
		"logs.dir ":   decide(spec.Task{Dir: "/srv", Command: job}, ships+"/link"+up+"/srv"),
	} {
		assert.False(t, d.Allowed, want)
		assert.Contains(t, d.Reason, want)
		assert.Contains(t, d.Reason, "contains .., which policies do not allow")
	}
	assert.True(t, decide(spec.Task{Dir: "/srv/..a", Command: job}, "/srv/b..").Allowed)
}

// Only the program that the policy was asked about is started, even if a link has changed since.
func TestOnlyWhatWasDecidedOnIsStarted(t *testing.T) {
	h, _ := policedHost(t, "[{signers: [unsigned], user: root, programs: [/opt/jobs/*]}]")
	s := &spec.RunSpec{Command: []string{"/opt/jobs/a"}, Dir: "/", Tasks: []spec.TaskGroup{{Type: "worker"}}}
	l := &taskLease{Host: h, plan: &plan{Spec: s, As: "root"}, key: runkey.Task{Task: "worker-0"}}
	d := must.Get(l.allowedStart(s.TaskList()[0]))(t)
	require.True(t, d.Allowed)
	require.NoError(t, l.written(supervisor.Command{Path: "/opt/jobs/a", Dir: "/"}))
	assert.ErrorContains(t, l.written(supervisor.Command{Path: "/opt/jobs/b", Dir: "/"}), "the policy was checked for /opt/jobs/a, but the program is now /opt/jobs/b")
	assert.ErrorContains(t, l.written(supervisor.Command{Path: "/opt/jobs/a", Dir: "/etc"}), "the policy was checked for the directory /, but it is now /etc")
}

// A different spec is not accepted for a run's execution, in any generation.
func TestRunGoesOnWithItsOwnSpec(t *testing.T) {
	h, key := policedHost(t, "[{signers: [alice], user: root}, {signers: [unsigned], user: root}]")
	run := runkey.Run{Namespace: "default", WorkflowID: "r", RunID: "1"}
	of := func(s *spec.RunSpec) leave {
		s = s.WithDefaults()
		by, problems := h.gate.admit(run, hostapi.ReserveInput{Spec: s}, s.TaskList())
		require.Empty(t, problems)
		return by
	}
	unsigned := &spec.RunSpec{Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}
	other := &spec.RunSpec{Command: []string{"/bin/false"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}
	signed := *unsigned
	signed.Signature = must.Get(signatures.OfRun("r", unsigned).Sign(key, time.Now().Add(time.Hour)))(t)
	p := &plan{Run: run, Statement: of(unsigned).statement}
	require.NoError(t, h.gate.sameSpec(p, of(unsigned)))
	assert.ErrorContains(t, h.gate.sameSpec(p, of(other)), "this host already has the run, with a different spec or different signers")
	assert.ErrorContains(t, h.gate.sameSpec(p, of(&signed)), "this host already has the run, with a different spec or different signers")

	elastic := &spec.RunSpec{
		Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(4)}},
		Hosts: spec.Hosts{Count: "2:4"}, RestartScope: spec.RestartScopeGroup,
	}
	p.Statement = of(elastic).statement
	assert.NoError(t, h.gate.sameSpec(p, of(elastic.Sized(3))), "a part of an elastic run")
	h.Guard = nil
	assert.NoError(t, h.gate.sameSpec(p, leave{}))
}

// A spec's tasks are listed only once their number is known to be allowed.
func TestNumberOfTasksIsBoundedOnTheHost(t *testing.T) {
	h, _ := policedHost(t, "[]")
	s := &spec.RunSpec{Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2_000_000_000)}}}
	ask := func() error {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivity(h.Reserve)
		_, err := env.ExecuteActivity(h.Reserve, hostapi.ReserveInput{Spec: s})
		return err
	}
	h.Server = answering{}
	assert.ErrorContains(t, ask(), "2000000000 tasks; at most 10000 are allowed")
	s.Hosts.Count, s.RestartScope = "2:4", spec.RestartScopeGroup
	assert.ErrorContains(t, ask(), "2000000000 tasks; at most 10000 are allowed")
	h.Guard = nil
	assert.ErrorContains(t, ask(), "2000000000 tasks; at most 10000 are allowed")
}

// policedControl returns a host with a run that only alice may have signed; bounds are added to her
// rule.
func policedControl(t *testing.T, bounds string) (c *control, audit string) {
	c = newControl(t)
	h, _ := policedHost(t, "[{signers: [alice], user: root"+bounds+"}]")
	audit = filepath.Join(h.StateDir, "audit.log")
	c.host.Guard = guard.New(filepath.Join(h.StateDir, "policy.yaml"), audit, h.StateDir)
	_, err := c.host.plans.change(c.host.plans.all()[0].Run, func(p *plan) error {
		p.Spec = (&spec.RunSpec{Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}).WithDefaults()
		p.Tasks, p.Signers, p.As = []string{"worker-0"}, []string{"alice"}, "root"
		return nil
	})
	require.NoError(t, err)
	return c, audit
}

// Requests do not reach processes that the policy does not know.
func TestRequestsAreHeldAgainstWhatRuns(t *testing.T) {
	c, audit := policedControl(t, ", requests: [stacks]")
	ask := func(f, in any) error {
		_, err := c.env.ExecuteActivity(f, in)
		return err
	}
	stacks := func(tasks ...string) error {
		return ask(c.host.CaptureStacks, spec.HostRequest[spec.StacksRequest]{Request: spec.StacksRequest{Tasks: tasks}})
	}
	c.process("worker-0", "")
	require.NoError(t, stacks())
	require.NoError(t, stacks("worker-0"))
	unknown := []string{"worker-9"}
	for what, err := range map[string]error{
		"signal":  ask(c.host.SignalTasks, spec.HostRequest[spec.SignalRequest]{Request: spec.SignalRequest{Tasks: unknown, Signal: "SIGUSR1"}}),
		"restart": ask(c.host.RestartTasks, spec.HostRequest[spec.TaskRequest]{Request: spec.TaskRequest{Tasks: unknown}}),
		"stacks":  stacks(unknown...),
	} {
		assert.ErrorContains(t, err, "the run has no task worker-9 on this host", what)
	}
	c.process("worker-9", "")
	assert.ErrorContains(t, stacks(), "the run has no task worker-9 on this host", "an added one that was forgotten")
	assert.ErrorContains(t, ask(c.host.Unreserve, spec.Group{}), "worker-0 is still running here")
	assert.NotEmpty(t, c.host.plans.all()[0].Tasks)
	c.processes = nil
	require.NoError(t, ask(c.host.Unreserve, spec.Group{}))
	assert.Empty(t, c.host.plans.all()[0].Tasks)
	require.NoError(t, ask(c.host.SealTasks, hostapi.TasksInput{Tasks: []string{"worker-0"}}))
	b := must.Get(os.ReadFile(audit))(t)
	for _, what := range []string{"unreserve", "seal"} {
		assert.Contains(t, string(b), `"what":"`+what+`"`)
	}
}

// Stopping a task is never denied, but it does not permit another signal or a longer grace.
func TestStopLendsNoSignal(t *testing.T) {
	long, short := time.Hour, time.Millisecond
	for bounds, free := range map[string]bool{", requests: [restart]": false, ", requests: [restart, signal]": true, "": true} {
		c, _ := policedControl(t, bounds)
		p := c.host.plans.all()[0]
		of := func(in spec.TaskRequest) supervisor.Stop {
			in.Tasks = []string{"worker-0"}
			order, _, err := c.host.stops.byStop(p, in)
			require.NoError(t, err)
			require.Len(t, order, 1)
			return order[0]
		}
		own := of(spec.TaskRequest{})
		assert.Equal(t, own.Grace, p.Spec.Stop.Grace.Std())
		assert.Equal(t, short, of(spec.TaskRequest{Grace: spec.DurationOf(short)}).Grace, bounds)
		got := of(spec.TaskRequest{Signal: "SIGUSR1", Grace: spec.DurationOf(long)})
		if free {
			assert.Equal(t, supervisor.Stop{Signal: int(syscall.SIGUSR1), Grace: long}, got, bounds)
		} else {
			assert.Equal(t, own, got, bounds)
		}
	}
}

func TestClusterIsThatOfTheSpec(t *testing.T) {
	h, _ := policedHost(t, "[]")
	p := &plan{Spec: (&spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}}).WithDefaults()}
	good := func() hostapi.Cluster {
		return hostapi.Cluster{
			RPCLayer: p.Spec.RPCLayer, Profiles: p.Spec.EnvProfiles, MasterAddr: "a",
			Members: []hostapi.Member{{Type: "worker", Address: "a:1"}, {Type: "worker", Index: 1, Rank: 1, Address: "b:2"}},
		}
	}
	require.NoError(t, h.gate.checkCluster(p, good()))
	for name, spoil := range map[string]func(*hostapi.Cluster){
		"members":  func(c *hostapi.Cluster) { c.Members = c.Members[:1] },
		"ranks":    func(c *hostapi.Cluster) { c.Members[1].Rank = 0 },
		"types":    func(c *hostapi.Cluster) { c.Members[0].Type = "ps" },
		"address":  func(c *hostapi.Cluster) { c.Members[1].Address = "b:2\nEVIL=1" },
		"no port":  func(c *hostapi.Cluster) { c.Members[1].Address = "b" },
		"master":   func(c *hostapi.Cluster) { c.MasterAddr = "evil.example" },
		"layer":    func(c *hostapi.Cluster) { c.RPCLayer = "other" },
		"profiles": func(c *hostapi.Cluster) { c.Profiles = []spec.EnvProfile{spec.EnvTorch} },
	} {
		c := good()
		spoil(&c)
		assert.Error(t, h.gate.checkCluster(p, c), name)
	}
	h.Guard = nil
	assert.NoError(t, h.gate.checkCluster(p, hostapi.Cluster{}), "without a policy nothing is held against it")
}

func TestTasksGetClosuresOnlyWhereARuleSaysSo(t *testing.T) {
	for rules, allowed := range map[string]bool{
		"[{signers: [alice], user: root}]":                                             false,
		"[{signers: [alice], user: root, closures: true}]":                             true,
		"[{signers: [alice], user: root, closures: true, programs: [/bin/something]}]": false,
	} {
		h, _ := policedHost(t, rules)
		var err error
		h.plans = must.Get(openPlans(h.StateDir))(t)
		run := runkey.Run{Namespace: "default", WorkflowID: "r", RunID: "1"}
		_, err = h.plans.update(run, func(*plan) (*plan, error) {
			return &plan{Run: run, Signers: []string{"alice"}, As: "root", Spec: &spec.RunSpec{Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}}, nil
		})
		require.NoError(t, err)
		err = h.gate.mayServe(run, "worker-0")
		if allowed {
			assert.NoError(t, err, rules)
		} else {
			assert.ErrorContains(t, err, "the policy of host a does not allow it: rule 1 does not allow", rules)
		}
		assert.Error(t, h.gate.mayServe(run, "worker-7"))
	}
}
