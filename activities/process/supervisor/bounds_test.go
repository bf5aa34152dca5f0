package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

func TestLimitsOfACgroup(t *testing.T) {
	// The test machine may lack version 2 cgroups with controllers.
	dir, bare := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "memory.max"): "max\n", filepath.Join(dir, "memory.swap.max"): "max\n", filepath.Join(dir, "memory.oom.group"): "0\n",
		filepath.Join(dir, "pids.max"): "max\n", filepath.Join(dir, "cpu.max"): "max 100000\n",
		filepath.Join(dir, "memory.events"): "low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\noom_group_kill 0\n",
		filepath.Join(bare, "memory.max"):   "max",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	s := &cgroups{controllers: ControllersReply{Controllers: []string{"cpu", "memory", "pids"}}}
	l := Limits{Memory: 64 << 20, CPUs: 2, PIDs: 100}
	require.NoError(t, s.limit(dir, l))
	for file, want := range map[string]string{
		"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "100", "cpu.max": "200000 100000",
	} {
		assert.Equal(t, want, must.Read(t, dir, file))
	}

	p := &process{cgroup: dir, limits: l}
	assert.Equal(t, "limits.memory is 67108864 bytes", p.memoryLimit(), "an old kernel does not know the peak")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "memory.peak"), []byte("67100672\n"), 0o644))
	assert.Equal(t, "limits.memory is 67108864 bytes; it had used 67100672", p.memoryLimit())
	assert.Empty(t, (&process{cgroup: dir}).memoryLimit())

	// Only optional files may be missing, and limit never creates files.
	require.NoError(t, s.limit(bare, Limits{Memory: 1 << 20}))
	assert.NoFileExists(t, filepath.Join(bare, "memory.swap.max"))
	require.EqualError(t, s.limit(bare, Limits{PIDs: 5}), "its limits cannot be enforced: writing 5 to pids.max: no such file or directory")

	s.controllers = ControllersReply{Controllers: []string{"memory"}, Why: "because"}
	require.EqualError(t, s.limit(dir, l), "its limits cannot be enforced: its cgroup has no cpu controller (because)")
	require.EqualError(t, s.limit("", Limits{Memory: 1}), "its limits cannot be enforced: its cgroup has no memory controller (because)")
	require.NoError(t, s.limit("", Limits{Rlimits: []Rlimit{{Resource: unix.RLIMIT_CORE}}}))
}

// A process with its own counter has its own number of kills; the rest share the supervisor's
// count.
func TestOutOfMemory(t *testing.T) {
	const killed = -int(unix.SIGKILL)
	own, none := t.TempDir(), t.TempDir()
	events := func(dir string, n int) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "memory.events"), fmt.Appendf(nil, "oom 7\noom_kill %d\noom_group_kill 0\n", n), 0o644))
	}
	events(own, 2)
	shared := t.TempDir()
	events(shared, 5)
	limited := Limits{Memory: 1 << 20}
	for name, c := range map[string]struct {
		p    process
		exit Exit
		want Exit
	}{
		"its own":              {process{cgroup: own}, Exit{}, Exit{OOMKills: 2, OOMScope: "task"}},
		"at its limit":         {process{cgroup: own, limits: limited}, Exit{Code: killed}, Exit{Code: killed, OOMKills: 2, OOMScope: "task", Reason: ReasonOOM, Detail: "limits.memory is 1048576 bytes"}},
		"a child at its limit": {process{cgroup: own, limits: limited}, Exit{}, Exit{OOMKills: 2, OOMScope: "task"}},
		"on_oom":               {process{cgroup: own, oomFails: true}, Exit{}, Exit{OOMKills: 2, OOMScope: "task", Reason: ReasonOOM}},
		"stopped":              {process{cgroup: own, oomFails: true}, Exit{Reason: ReasonCollateral}, Exit{OOMKills: 2, OOMScope: "task", Reason: ReasonCollateral}},
		"of all":               {process{cgroup: none, oomBefore: 4}, Exit{}, Exit{OOMKills: 1, OOMScope: "cgroup"}},
		"before it":            {process{oomBefore: 5, oomFails: true}, Exit{}, Exit{}},
		"on_oom, of all":       {process{oomBefore: 4, oomFails: true}, Exit{}, Exit{OOMKills: 1, OOMScope: "cgroup", Reason: ReasonOOM}},
	} {
		s := &cgroups{oom: cgroup.OOMCounter{Path: filepath.Join(shared, "memory.events"), Scope: "cgroup"}}
		kills, scope := s.oomKills(&c.p)
		s.setOOM(&c.p, &c.exit, kills, scope)
		assert.Equal(t, c.want, c.exit, name)
	}

	s := &cgroups{oom: cgroup.OOMCounter{Path: filepath.Join(shared, "memory.events"), Scope: "cgroup"}}
	victim, other := &process{oomBefore: 4}, &process{oomBefore: 4}
	s.setOOM(victim, &Exit{Code: killed}, 1, "cgroup")
	kills, _ := s.oomKills(other)
	assert.Zero(t, kills, "the death of the other explains it")
}

// Limits apply from a program's first instruction on.
func TestLimitsOfAProcess(t *testing.T) {
	h := newHost(t, nil)
	r := h.request("limits", 0, "")
	// Not a shell, which would use up its time.
	r.Command.Path, r.Command.Args = "/bin/cat", []string{"cat", "/proc/self/limits"}
	r.Command.Limits.Rlimits = []Rlimit{{Resource: unix.RLIMIT_NOFILE, Value: 64}, {Resource: unix.RLIMIT_CORE}}
	p := h.launch(r)
	assert.Nil(t, p.Exit)
	e := h.wait("limits", 0)
	require.Zero(t, e.Code)
	limits := must.Read(t, r.Command.Stdout)
	assert.Regexp(t, `Max open files +64 +64 `, limits)
	assert.Regexp(t, `Max core file size +0 +0 `, limits)

	// A process without limits gets the supervisor's limits.
	r = h.request("free", 0, "ulimit -Hn")
	h.launch(r)
	require.Zero(t, h.wait("free", 0).Code)
	assert.Equal(t, strconv.FormatUint(fault.MaxFiles(), 10)+"\n", must.Read(t, r.Command.Stdout))

	// A limited process is stopped and restarted like any other, and a program that cannot be
	// executed is reported.
	r = h.request("stopped", 0, `trap 'exit 5' TERM; echo up > $D/up; while :; do sleep 0.01; done`)
	r.Command.Limits.Rlimits = []Rlimit{{Resource: unix.RLIMIT_NOFILE, Value: 64}}
	h.launch(r)
	h.until("it runs", func() bool { return h.exists("up") })
	h.stop(int(unix.SIGTERM), patience, "stopped")
	assert.Equal(t, 5, h.wait("stopped", 0).Code)
	r = h.request("missing", 0, "")
	r.Command.Path, r.Command.Limits.Rlimits = "/no/such/program", []Rlimit{{Resource: unix.RLIMIT_NOFILE, Value: 64}}
	h.launch(r)
	assert.Equal(t, exitcode.NotFound, h.wait("missing", 0).Code)
}

func TestLimitsThatCannotBeEnforcedAreAnError(t *testing.T) {
	h := newHost(t, func(r *role) { r.NoCgroups = true })
	reply := must.Get(h.client.Controllers(h.ctx()))(t)
	assert.Empty(t, reply.Controllers)
	r := h.request("hog", 0, "exit 0")
	r.Command.Limits.Memory = 1 << 30
	h.launch(r)
	e := h.wait("hog", 0)
	assert.Equal(t, exitcode.NotExecutable, e.Code)
	assert.Equal(t, "its limits cannot be enforced: its cgroup has no memory controller ("+reply.Why+")", e.StartError)
}

// A memory hog and a fork bomb are stopped if the machine has version 2 cgroups with controllers.
func TestAttacksOnMemoryAndProcesses(t *testing.T) {
	h := newHost(t, nil)
	reply := must.Get(h.client.Controllers(h.ctx()))(t)
	if reply.Why != "" {
		t.Skip(reply.Why)
	}
	h.sh("neighbour", 0, "echo $$ > $D/neighbour; exec sleep 600")
	hog := h.request("hog", 0, "head -c 1G /dev/zero | tail; echo survived")
	hog.Command.Limits.Memory = 64 << 20
	h.launch(hog)
	e := h.wait("hog", 0)
	assert.Equal(t, ReasonOOM, e.Reason)
	assert.Contains(t, e.Detail, "limits.memory is 67108864 bytes")
	bomb := h.request("bomb", 0, `bomb() { bomb | bomb & }; bomb; sleep 1; exit 3`)
	bomb.Command.Limits.PIDs = 50
	h.launch(bomb)
	assert.NotZero(t, h.wait("bomb", 0).Code)
	assert.False(t, gone(h.pidIn("neighbour")), "the others do not notice")
	h.stop(int(unix.SIGKILL), 0, "neighbour")
}

// The supervisor is protected from the OOM killer if that is permitted, and its children
// never are.
func TestOOMScores(t *testing.T) {
	h := newHost(t, nil)
	r := h.request("score", 0, "")
	r.Command.Path, r.Command.Args = "/bin/cat", []string{"cat", fork.OOMFile}
	h.launch(r)
	require.Zero(t, h.wait("score", 0).Code)
	mine := must.Read(t, fork.OOMFile)
	n := must.Get(strconv.Atoi(strings.TrimSpace(mine)))(t)
	of := func(pid int) string { return must.Read(t, "/proc", strconv.Itoa(pid), "oom_score_adj") }
	assert.Equal(t, strconv.Itoa(max(0, n))+"\n", must.Read(t, r.Command.Stdout))
	side := must.Get(proc.ReadStat(h.sidePID()))(t)
	assert.Equal(t, strconv.Itoa(max(0, n))+"\n", of(h.sidePID()))
	if os.WriteFile(fork.OOMFile, []byte(strconv.Itoa(fork.OOMProtected)), 0) != nil {
		t.Log("this user may not protect a process")
		assert.Equal(t, mine, of(side.PPID))
		return
	}
	require.NoError(t, os.WriteFile(fork.OOMFile, []byte(strconv.Itoa(n)), 0))
	assert.Equal(t, strconv.Itoa(fork.OOMProtected)+"\n", of(side.PPID))
}

func TestALoggerThatWritesTooMuchIsEnded(t *testing.T) {
	h := newHost(t, nil)
	quiet := h.request("quiet", 0, "echo $$ > $D/quiet; exec sleep 600")
	quiet.Command.LogQuota = 1 << 20
	h.launch(quiet)
	// This would write 100 GB unless it is stopped.
	loud := h.request("loud", 0, "while head -c 1M /dev/zero; do sleep 0.01; done")
	loud.Command.LogQuota = 1 << 20
	h.launch(loud)
	e := h.wait("loud", 0)
	assert.Equal(t, ReasonLogQuota, e.Reason)
	assert.Equal(t, -int(unix.SIGKILL), e.Code)
	assert.Regexp(t, `^the run's tasks have written \d{7,} bytes of output on this host, but logs.quota is 1048576$`, e.Detail)
	assert.False(t, gone(h.pidIn("quiet")), "the one that wrote nothing goes on")

	// The rest then shares the whole quota. A process that exited before a check may also have
	// written too much.
	little := h.request("little", 0, "echo x")
	little.Command.LogQuota = 1 << 20
	h.launch(little)
	assert.Equal(t, ReasonNone, h.wait("little", 0).Reason)
	quick := h.request("quick", 0, "head -c 2M /dev/zero")
	quick.Command.LogQuota = 1 << 20
	h.launch(quick)
	assert.Equal(t, ReasonLogQuota, h.wait("quick", 0).Reason)
	h.stop(int(unix.SIGKILL), 0, "quiet")
	assert.Equal(t, ReasonTerminate, h.wait("quiet", 0).Reason)
}

func TestOutputThatIsTooMuchIsDropped(t *testing.T) {
	h := newHost(t, nil)
	const quota = 64 << 10
	r := h.request("loud", 0, "echo begin; head -c 300M /dev/zero; echo done > $D/done")
	r.Command.LogQuota, r.Command.LogDrop = quota, true
	h.launch(r)
	e := h.wait("loud", 0)
	assert.Zero(t, e.Code)
	assert.Equal(t, ReasonNone, e.Reason)
	assert.True(t, h.exists("done"), "it was not ended")
	text := must.Read(t, r.Command.Stdout)
	assert.Equal(t, 300<<20+len("begin\n")-quota, int(e.Dropped))
	assert.True(t, strings.HasPrefix(text, "begin\n"))
	lines := strings.Split(strings.TrimSpace(text[quota:]), "\n")
	assert.Equal(t, []string{
		"clusterrun: further output is discarded because logs.quota is 65536 bytes",
		"clusterrun: " + strconv.FormatInt(e.Dropped, 10) + " bytes of this output were discarded",
	}, slices.DeleteFunc(lines, func(l string) bool { return l == "" }))

	within := h.request("quiet", 0, "echo x")
	within.Command.LogQuota, within.Command.LogDrop = quota, true
	within.Key.Run.RunID = "another"
	h.launch(within)
	p := must.Get(h.client.Wait(h.ctx(), ProcessRef{Key: within.Key}))(t)
	assert.Zero(t, p.Exit.Dropped)
	assert.Equal(t, "x\n", must.Read(t, within.Command.Stdout))
}

// The table stays free while a released run's journal is read from a hanging disk.
func TestTheTableIsFreeWhileAReleasedRunIsRead(t *testing.T) {
	state := &State{dir: t.TempDir(), runs: map[string]*run{}}
	s := &supervisor{table: newTable(state)}
	path := state.releasedPath(runHash(testRun))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	read := make(chan error, 1)
	go func() {
		_, err := s.Processes(t.Context(), testRun)
		read <- err
	}()
	disk, err := os.OpenFile(path, os.O_WRONLY, 0) // returns once the journal is being read
	require.NoError(t, err)
	free := s.mu.TryLock()
	assert.True(t, free)
	if free {
		s.mu.Unlock()
	}
	require.NoError(t, disk.Close())
	require.NoError(t, <-read)
}

// A run added while the disk is searched for it is found.
func TestARunThatIsAddedMeanwhileIsFound(t *testing.T) {
	state := &State{dir: t.TempDir(), runs: map[string]*run{}}
	s := newTable(state)
	path := state.releasedPath(runHash(testRun))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	found := make(chan *run)
	go func() {
		r := s.lockOrAddRun(testRun)
		s.mu.Unlock()
		found <- r
	}()
	disk := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	s.mu.Lock()
	added := newRun(runHash(testRun), testRun)
	s.runs[added.hash] = added
	s.mu.Unlock()
	require.NoError(t, disk.Close())
	assert.Same(t, added, <-found)
}

// A slow lease, for example on a hanging disk, does not delay other runs' leases.
func TestALeaseWaitsForNoOtherRun(t *testing.T) {
	state := &State{dir: t.TempDir(), volatile: true, runs: map[string]*run{}}
	s := &supervisor{table: newTable(state), cfg: Config{PortsLapse: defaultPortsLapse}, log: slog.New(slog.DiscardHandler), guard: &guard{needed: true}}
	slow := state.journalPath(runHash(testRun))
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	leased := make(chan error, 1)
	go func() {
		_, err := s.Lease(t.Context(), PortLeaseRequest{Run: testRun, Count: 1})
		leased <- err
	}()
	other := runkey.Run{Namespace: "n", WorkflowID: "other", RunID: "r"}
	reply := must.Get(s.Lease(t.Context(), PortLeaseRequest{Run: other, Count: 1}))(t)
	assert.Len(t, reply.Ports, 1)
	assert.Empty(t, leased)
	disk, err := os.OpenFile(slow, os.O_RDONLY, 0) // returns once the lease is being written
	require.NoError(t, err)
	require.NoError(t, <-leased)
	require.NoError(t, disk.Close())
	for _, r := range s.runs {
		r.ports.Free()
	}
}

// Only the process is bound, with all its threads and children, before it executes anything
// (MPR-33).
func TestCPUs_MPR33(t *testing.T) {
	own := unix.NewCPUSet(fork.MostCPUs)
	require.NoError(t, unix.SchedGetaffinityDynamic(0, own))
	var cpus []int
	for n := range fork.MostCPUs {
		if own.IsSet(n) {
			cpus = append(cpus, n)
		}
	}
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	first, last := cpus[0], cpus[len(cpus)-1]
	all := allowedIn(t, "/proc/self/status")

	h := newHost(t, nil)
	tasks := 0
	start := func(program string, cpus ...int) Process {
		r := h.request("task-"+strconv.Itoa(tasks), 0, "")
		tasks++
		r.Command.Path, r.Command.Args = program, []string{"cat", "/proc/self/status"}
		r.Command.CPUs = cpus
		p := h.launch(r)
		h.wait(r.Key.Task, 0)
		return p
	}
	allowed := func(p Process) string { return allowedIn(t, p.LogDir+"/stdout.log") }

	require.Equal(t, all, allowed(start("/bin/cat")))
	require.Equal(t, strconv.Itoa(last), allowed(start("/bin/cat", last)))
	require.Equal(t, all, allowed(start("/bin/cat")), "the next one is not bound")
	require.Equal(t, strconv.Itoa(first), allowed(start("/bin/cat", first)))

	for text, bad := range map[string][]int{
		"binding to CPUs [8191]: invalid argument":           {8191},
		"binding to CPUs [8192]: there is no CPU 8192":       {8192},
		"binding to CPUs [-1]: there is no CPU -1":           {-1},
		"]: this process may not use CPU 8191":               {first, 8191},
		"cannot execute /nowhere: no such file or directory": nil,
	} {
		program := "/bin/cat"
		if bad == nil {
			program, bad = "/nowhere", []int{last}
		}
		p := start(program, bad...)
		require.NotNil(t, p.Exit, text)
		require.Contains(t, p.Exit.StartError, text)
		require.Equal(t, all, allowed(start("/bin/cat")), "after %s", text)
	}
	require.Equal(t, strconv.Itoa(last), allowed(start("/bin/cat", last)))
}

func allowedIn(t *testing.T, path string) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	_, rest, found := strings.Cut(string(b), "Cpus_allowed_list:")
	require.True(t, found, "%s", b)
	list, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(list)
}
