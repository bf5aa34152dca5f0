package drill

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// stopAfter is the StopAfter of these runs: a host that is cut off for longer stops its
	// processes.
	stopAfter = 10 * time.Second
	// outage is the second bound of the runs in every other round: hosts that reach each other
	// continue without a server for that long.
	outage = 40 * time.Second
	// serverStarts is the maximum time the server takes to start on such a machine.
	serverStarts = 3 * time.Second
	// goneBound is the maximum time a process may outlive its run.
	goneBound = 10 * time.Second
)

func TestMain(m *testing.M) {
	if IsMember() {
		os.Exit(Member())
	}
	os.Exit(m.Run())
}

// stage is a drill's cluster.
type stage struct {
	seed   uint64
	dir    string
	mark   string
	server *harness.Server
	hosts  []*host
	client client.Client
	killed map[int]bool
	pulse  pulse
	// faulty are the hosts where this round's faults may kill processes.
	faulty map[string]bool
	// full reports whether a disk was full in this round.
	full bool
	// serverless reports whether the server was away in this round.
	serverless bool
	// patience is the time that the server may be unreachable in this round, given a machine fast
	// enough for leases of stopAfter.
	patience time.Duration
	random   *rand.Rand
	// round is the round's number. notices counts the notices given, sick are the hosts with a failed
	// check, and lost the hosts that were killed for long.
	round, notices int
	sick, lost     []span
}

// number returns the value of a make drill variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "%s is a number", name)
	return n
}

func TestDrill(t *testing.T) {
	if os.Getenv("FAULTS") == "" {
		t.Skip("make drill breaks a cluster on purpose")
	}
	limits := Limits{
		Namespaces: hasNamespaces(), Disks: hasDisks(t), StopAfter: stopAfter,
		Outage: time.Duration(number(t, "OUTAGE", 0)) * time.Second,
	}
	s := &stage{
		seed: number(t, "SEED", 1), dir: t.TempDir(), mark: fmt.Sprint(os.Getpid()),
		killed: map[int]bool{},
	}
	s.random = rand.New(rand.NewPCG(s.seed, 1))
	faults := int(number(t, "FAULTS", 0))
	t.Logf("SEED=%d FAULTS=%d, namespaces: %v, disks: %v", s.seed, faults, limits.Namespaces, limits.Disks)
	s.server = harness.StartServer(t, "--headless")
	s.client = s.server.Client()
	t.Cleanup(s.thaw)
	go s.pulse.keep(t.Context(), s.client)
	for i := range Hosts {
		dir := filepath.Join(s.dir, HostName(i))
		require.NoError(t, os.Mkdir(dir, 0o700))
		s.hosts = append(s.hosts, newHost(t, i, s.server.Address, limits, dir))
	}
	for i, round := range NewSchedule(s.seed, faults, limits) {
		began := time.Now()
		found := s.play(t, i, round)
		text := fmt.Sprintf("round %d, %.0fs; the server was silent for at most %.1fs", i, time.Since(began).Seconds(), s.pulse.gap().Seconds())
		for _, f := range round {
			text += "\n  " + f.String()
		}
		t.Log(text)
		if len(found) > 0 {
			t.Errorf("round %d of SEED=%d:\n%s", i, s.seed, strings.Join(found, "\n"))
		}
	}
}

// play plays a round and returns its faults.
func (s *stage) play(t *testing.T, n int, faults []Fault) []string {
	s.round, s.notices, s.sick, s.lost = n, 0, nil, nil
	var found []string
	for _, f := range faults {
		if f.Kind == FailCheck {
			found = append(found, s.sicken(t, s.hosts[f.Host])...)
		}
	}
	s.pulse.begin()
	runs := s.launch(t)
	s.conduct(t, faults, runs)
	s.faulty = map[string]bool{}
	s.full = slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == FillState || f.Kind == FillLogs })
	s.serverless, s.patience = false, time.Second
	for _, f := range faults {
		if f.Kind == KillServer || f.Kind == KillServerTwice || f.Kind == FreezeServer {
			s.serverless, s.patience = true, max(s.patience, f.For+serverStarts)
		}
		for _, i := range f.MayLose() {
			s.faulty[HostName(i)] = true
		}
	}
	for _, r := range runs {
		found = append(found, r.finish(t, s)...)
	}
	return append(found, s.leftovers(t, n, runs)...)
}

// mayLose returns the hosts that may have lost processes in this round. These are all hosts if
// leases may have expired while the server was unreachable.
func (s *stage) mayLose() map[string]bool {
	if s.pulse.gap() < s.patience {
		return s.faulty
	}
	all := map[string]bool{}
	for _, h := range s.hosts {
		all[h.name] = true
	}
	return all
}

// conduct causes and heals the faults, one event at a time.
func (s *stage) conduct(t *testing.T, faults []Fault, runs []*run) {
	type event struct {
		at time.Duration
		do func()
	}
	var events []event
	began := time.Now()
	for _, f := range faults {
		var heal func()
		events = append(events,
			event{f.At, func() { heal = s.apply(t, f, runs) }},
			event{f.At + f.For, func() { heal() }})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range events {
		time.Sleep(time.Until(began.Add(e.at)))
		e.do()
	}
}

// leftovers lists what ended runs left behind.
func (s *stage) leftovers(t *testing.T, round int, runs []*run) []string {
	var found []string
	deadline := time.Now().Add(goneBound)
	for len(s.members()) > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	for _, pid := range s.members() {
		found = append(found, fmt.Sprintf("process %d is left: %s", pid, harness.Cmdline(pid)))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	belongings := s.belongings(runs)
	for len(belongings) > 0 && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		belongings = s.belongings(runs)
	}
	found = append(found, belongings...)
	return append(found, s.slots(t, round)...)
}

// belongings lists what remains of runs' processes.
func (s *stage) belongings(runs []*run) (found []string) {
	for _, r := range runs {
		pages, err := readLedger(r.ledger)
		if err != nil {
			found = append(found, err.Error())
		}
		for _, p := range pages {
			for _, what := range s.left(p) {
				found = append(found, fmt.Sprintf("%s: %s of %s is left", r.name, what, p.task))
			}
		}
	}
	return found
}

// left lists what remains of an exited process.
func (s *stage) left(p page) []string {
	var found []string
	if _, err := os.Stat(p.socket); p.socket != "" && err == nil {
		found = append(found, "the socket "+p.socket)
	}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		// If a host worker cannot create cgroups, its processes stay in the worker's cgroup,
		// which remains.
		dir := filepath.Join(root, p.cgroup)
		if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); strings.Contains(p.cgroup, "clusterrun") && err == nil {
			found = append(found, fmt.Sprintf("the cgroup %s with the processes %q", dir, b))
		}
	}
	for _, h := range s.hosts {
		if h.name == p.host && h.holdsPort(p.port) {
			found = append(found, "the port "+p.port)
		}
	}
	return found
}

// slots starts a run that needs every slot of every host, so that it can only start if all are
// free.
func (s *stage) slots(t *testing.T, round int) []string {
	id := fmt.Sprintf("drill-%d-%d-slots", s.seed, round)
	all := &spec.RunSpec{Command: []string{"true"}}
	for i := range Hosts {
		all.Tasks = append(all.Tasks, tasks(fmt.Sprintf("on%d", i), "sleep 0", slots, i))
	}
	file := filepath.Join(s.dir, id+".json")
	writeJSON(t, file, all)
	if code, _, text := s.command(t, "submit", "--address", s.server.Address, "--id", id, file); code != 0 {
		return []string{fmt.Sprintf("the slots of all hosts: submit exits with %d: %s", code, text)}
	}
	p := s.start(t, "wait", "--address", s.server.Address, id)
	if !p.EndsWithin(slotsTake) {
		return []string{"the slots of all hosts: not had after " + slotsTake.String() + ": " + s.why(t, id)}
	}
	if code := p.ExitCode(); code != 0 {
		return []string{fmt.Sprintf("the slots of all hosts: wait exits with %d: %s", code, p.Stderr())}
	}
	return nil
}

// slotsTake is the maximum time a run may wait for all slots. It is long enough to give up a host
// that was lost with processes of several runs.
const slotsTake = 3 * time.Minute

// why returns command output about a stuck run and about the fleet.
func (s *stage) why(t *testing.T, id string) string {
	var all strings.Builder
	for _, args := range [][]string{{"status", "--why", id}, {"status", id}, {"host", "list"}, {"list", "--pending"}, {"list"}} {
		code, out, text := s.command(t, append(args, "--address", s.server.Address)...)
		fmt.Fprintf(&all, "\n%s (%d): %s%s", strings.Join(args, " "), code, out, text)
	}
	return all.String()
}

// members are the running processes of tasks.
func (s *stage) members() []int { return harness.Alive(markVar + "=" + s.mark + "\x00") }

func TestTheSameSeedMakesTheSameSchedule(t *testing.T) {
	limits := Limits{Namespaces: true, Disks: true, StopAfter: 10 * time.Second}
	a, b, other := NewSchedule(7, 33, limits), NewSchedule(7, 33, limits), NewSchedule(8, 33, limits)
	assert.Equal(t, a, b)
	assert.NotEqual(t, a, other)
	n := 0
	for _, round := range a {
		n += len(round)
	}
	assert.Equal(t, 33, n)
}

func TestAScheduleHasEveryKindOfFault(t *testing.T) {
	seen := map[Kind]bool{}
	for _, round := range NewSchedule(1, 1000, Limits{Namespaces: true, Disks: true, StopAfter: 10 * time.Second}) {
		for _, f := range round {
			seen[f.Kind] = true
			assert.False(t, f.Kind == LoseHost && len(round) > 1, "a lost host is alone in its round")
		}
	}
	assert.Len(t, seen, 17)
	for _, round := range NewSchedule(1, 1000, Limits{StopAfter: 10 * time.Second}) {
		for _, f := range round {
			assert.NotContains(t, []Kind{Unplug, FillState, FillLogs}, f.Kind, "what the machine does not have")
		}
	}
}

// A host without tasks is checked every checkEvery, and noticedWithin limits how long the fleet may
// take to receive the results.
const checkEvery, noticedWithin = time.Second, 20 * time.Second

// sickness is a file that makes its host's check fail while it exists.
func (h *host) sickness() string { return filepath.Join(h.dir, "sick") }

func (h *host) check() string {
	return "drill=if [ -e '" + h.sickness() + "' ]; then echo 'it feels sick'; exit 1; fi"
}

// sicken makes checks fail on a host without tasks. It returns a fault if the fleet does not report
// the reason.
func (s *stage) sicken(t *testing.T, h *host) []string {
	require.NoError(t, os.WriteFile(h.sickness(), nil, 0o600))
	var last string
	for deadline := time.Now().Add(noticedWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		hosts, err := starter.GetFleet(s.client, "").Hosts(t.Context())
		i := slices.IndexFunc(hosts, func(o fleet.HostStatus) bool { return o.Name == h.name })
		if err != nil || i < 0 {
			last = fmt.Sprintf("not there: %v", err)
			continue
		}
		o := hosts[i]
		last = fmt.Sprintf("%s, because of %q: %q", o.State, o.CordonedBy, o.Failing)
		if o.State == fleet.HostCordoned && len(o.Failing) == 1 && strings.Contains(o.Failing[0].Reason, "it feels sick") {
			s.sick = append(s.sick, span{host: h.name, from: bootNanos()})
			return nil
		}
	}
	return []string{fmt.Sprintf("%s fails its check, and is %s", h.name, last)}
}

// recover makes a host's check succeed.
func (s *stage) recover(h *host) {
	for i := range s.sick {
		if s.sick[i].host == h.name && s.sick[i].until == 0 {
			s.sick[i].until = bootNanos()
		}
	}
	_ = os.Remove(h.sickness())
}

func TestAStartOnASickHostIsFound(t *testing.T) {
	sick := []span{{host: "host-a", from: 10, until: 20}, {host: "host-b", from: 10}}
	at := func(host string, started int64) string {
		return strings.Join(checkSick([]page{{pid: 1, task: "a-0", host: host, started: started}}, sick), "; ")
	}
	assert.Equal(t, "process 1 of a-0 was started on host-a, whose check failed", at("host-a", 15))
	assert.NotEmpty(t, at("host-b", 30))
	assert.Empty(t, at("host-a", 5))
	assert.Empty(t, at("host-a", 25))
	assert.Empty(t, at("host-c", 15))
}
