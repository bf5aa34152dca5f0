package activities

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"github.com/clusterrun/clusterrun/activities/guard"
	"github.com/clusterrun/clusterrun/activities/shipped"
	"github.com/clusterrun/clusterrun/activities/signatures"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskenv"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// policedHost is a host with that policy, and the key of alice.
func policedHost(t *testing.T, rules string) (*Host, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("allowed_signers: signers\nrules: "+rules), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "signers"), append([]byte("alice "), ssh.MarshalAuthorizedKey(key.PublicKey())...), 0o600))
	h := &Host{Config: Config{Name: "a", StateDir: dir, Guard: guard.New(file, "", dir), Log: zap.NewNop()}, shipped: shipped.Open(dir)}
	return h, key
}

func TestHostTakesAnElasticRunOfFewerTasks(t *testing.T) {
	h, key := policedHost(t, "[{signers: [alice], user: root}]")
	s := &spec.RunSpec{
		Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(4)}},
		Hosts: spec.Hosts{Count: "2:4"}, RestartScope: spec.RestartScopeGroup,
	}
	run := supervisor.RunKey{Namespace: "default", WorkflowID: "r", RunID: "1"}
	signature, err := signatures.OfRun("r", s).Sign(key, time.Now().Add(time.Hour))
	require.NoError(t, err)
	signature.Size = 4
	s.Signature = signature
	sized := s.WithDefaults().Sized(3)
	signers, _, problems := h.admit(run, ReserveInput{Spec: sized}, sized.TaskList())
	assert.Empty(t, problems)
	assert.Equal(t, []string{"alice"}, signers)
	more := s.WithDefaults()
	more.Tasks[0].Count = new(8)
	_, _, problems = h.admit(run, ReserveInput{Spec: more}, more.TaskList())
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].Message, "another spec")
}

func TestPolicyIsAskedAboutWhereLinksLead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	ships := filepath.Join(dir, "ships")
	require.NoError(t, os.MkdirAll(filepath.Join(ships, "src"), 0o700))
	require.NoError(t, os.Symlink("/etc", filepath.Join(ships, "out")))
	s := &spec.RunSpec{}
	of := func(s *spec.RunSpec, dir, program string) (string, string) {
		r := PolicyRequest(s, spec.Task{Dir: dir, Command: []string{program}}, ships, nil)
		return r.Directories[0], r.Program
	}
	at, program := of(s, filepath.Join(dir, "link", "new"), "/bin/../bin/sh")
	assert.Equal(t, "/etc/new", at)
	assert.Equal(t, "/bin/sh", program)
	s.Ship.Archive = &spec.Archive{}
	at, program = of(s, "src", "./train")
	assert.Equal(t, "ship:/src", at)
	assert.Equal(t, "ship:/src/train", program)
	at, _ = of(s, "", "train")
	assert.Equal(t, "ship:/", at)
	at, program = of(s, "out", "../../escaped")
	assert.Equal(t, "/etc", at)
	assert.Equal(t, filepath.Join(dir, "escaped"), program)
	r := PolicyRequest(s, spec.Task{}, ships, nil)
	assert.Empty(t, r.Program)
}

func TestClusterIsThatOfTheSpec(t *testing.T) {
	h, _ := policedHost(t, "[]")
	p := &plan{Spec: (&spec.RunSpec{Command: []string{"x"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}}).WithDefaults()}
	good := func() taskenv.Cluster {
		return taskenv.Cluster{
			RPCLayer: p.Spec.RPCLayer, Profiles: p.Spec.EnvProfiles, MasterAddr: "a",
			Members: []taskenv.Member{{Type: "worker", Address: "a:1"}, {Type: "worker", Index: 1, Rank: 1, Address: "b:2"}},
		}
	}
	require.NoError(t, h.checkCluster(p, good()))
	for name, spoil := range map[string]func(*taskenv.Cluster){
		"members":  func(c *taskenv.Cluster) { c.Members = c.Members[:1] },
		"ranks":    func(c *taskenv.Cluster) { c.Members[1].Rank = 0 },
		"types":    func(c *taskenv.Cluster) { c.Members[0].Type = "ps" },
		"address":  func(c *taskenv.Cluster) { c.Members[1].Address = "b:2\nEVIL=1" },
		"no port":  func(c *taskenv.Cluster) { c.Members[1].Address = "b" },
		"master":   func(c *taskenv.Cluster) { c.MasterAddr = "evil.example" },
		"layer":    func(c *taskenv.Cluster) { c.RPCLayer = "other" },
		"profiles": func(c *taskenv.Cluster) { c.Profiles = []spec.EnvProfile{spec.EnvTorch} },
	} {
		c := good()
		spoil(&c)
		assert.Error(t, h.checkCluster(p, c), name)
	}
	h.Guard = nil
	assert.NoError(t, h.checkCluster(p, taskenv.Cluster{}), "without a policy nothing is held against it")
}

func TestTasksGetClosuresOnlyWhereARuleSaysSo(t *testing.T) {
	for rules, allowed := range map[string]bool{
		"[{signers: [alice], user: root}]":                                             false,
		"[{signers: [alice], user: root, closures: true}]":                             true,
		"[{signers: [alice], user: root, closures: true, programs: [/bin/something]}]": false,
	} {
		h, _ := policedHost(t, rules)
		var err error
		h.plans, err = openPlans(h.StateDir)
		require.NoError(t, err)
		run := supervisor.RunKey{Namespace: "default", WorkflowID: "r", RunID: "1"}
		_, err = h.plans.update(run, func(*plan) (*plan, error) {
			return &plan{Run: run, Signers: []string{"alice"}, As: "root", Spec: &spec.RunSpec{Command: []string{"/bin/true"}, Tasks: []spec.TaskGroup{{Type: "worker"}}}}, nil
		})
		require.NoError(t, err)
		err = h.mayServe(run, "worker-0")
		if allowed {
			assert.NoError(t, err, rules)
		} else {
			assert.ErrorContains(t, err, "the policy of host a does not allow it: rule 1 does not allow", rules)
		}
		assert.Error(t, h.mayServe(run, "worker-7"))
	}
}
