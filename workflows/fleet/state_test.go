package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The state for 1,900 hosts with 3,800 runs, and 5,000 waiting ones, stays under 2 MiB, the payload
// limit.
func TestStateFitsIntoAPayload(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same ones each time
	m, now := New(), time.Unix(1_800_000_000, 123_000_000)
	id := func(i int) Run {
		return Run{WorkflowID: fmt.Sprintf("training-%s-%06d", strings.Repeat("x", 12), i), RunID: fmt.Sprintf("%036d", i)}
	}
	for i := range maxHosts {
		j := Joined{Host: aHost(i), Now: now}
		j.Host.Instance, j.Host.Boot, j.Host.Address = fmt.Sprintf("%026d", i), fmt.Sprintf("%036d", i), "10.0.12.123"
		j.Host.Store = &spec.HostService{Address: "10.0.12.123:41000", Fingerprint: strings.Repeat("f", 64), Token: strings.Repeat("t", 64)}
		for k := range 2 {
			j.Holds = append(j.Holds, Holding{Run: id(2*i + k), Tasks: 2})
		}
		j.Host.Slots = 4
		m.Step(j)
	}
	for i := range maxWaiting {
		d := mixed(random)
		d.Groups[0].Tasks = min(d.Groups[0].Tasks, 4)
		m.asked(Asked{Run: id(10_000 + i), Demand: d, Since: now, Now: now}) // decided together later
	}
	m.Step(Passed{Now: now})
	require.Len(t, m.waiting, maxWaiting)
	state := m.State()
	packed := must.Get(state.Pack())(t)
	b := scripts.JSON(t, packed)
	require.Less(t, len(b), 2<<20)
	again := must.Get(packed.Unpack())(t)
	all := scripts.JSON(t, state)
	require.Equal(t, all, scripts.JSON(t, again))
	t.Logf("%d KiB, packed to %d KiB", len(all)>>10, len(b)>>10)
}

// All hosts and all waiting runs are returned page by page.
func TestPages(t *testing.T) {
	m, now := New(), time.Unix(1000, 0)
	for i := range 2*HostsPerPage + 1 {
		m.Step(Joined{Host: Host{Name: hostName(i), Instance: "i", Slots: 1}, Now: now})
	}
	for i := range 2 * WaitingPerPage {
		m.asked(Asked{Run: Run{fmt.Sprint(i), "1"}, Demand: Demand{Groups: []Group{{Tasks: 1}}}, Now: now})
	}
	hosts := must.Get(AllHosts(func(after string) ([]HostStatus, error) { return m.HostsAfter(after, HostsPerPage), nil }))(t)
	require.Equal(t, m.Hosts(), hosts)
	waiting := must.Get(AllWaiting(func(after int) ([]Waiting, error) { return m.QueueAfter(after, WaitingPerPage), nil }))(t)
	require.Equal(t, m.Queue(), waiting)
	require.Equal(t, 2*WaitingPerPage, waiting[len(waiting)-1].Position)
}

// The cordons of absent hosts are limited, and so are unused silent hosts.
func TestHostsThatAreGoneAreBounded(t *testing.T) {
	m, now := New(), time.Unix(1000, 0)
	for i := range maxHosts + 10 {
		now = now.Add(time.Second)
		h := Host{Name: hostName(i), Instance: "i", Slots: 1}
		require.NoError(t, m.CheckJoin(Joined{Host: h, Now: now}), i)
		m.Step(Joined{Host: h, Now: now})
		m.Step(Cordoned{Name: h.Name, Now: now})
		m.Step(Silent{Name: h.Name, Instance: "i", Now: now})
	}
	require.Len(t, m.hosts, maxHosts)
	require.Nil(t, m.host(hostName(0)))
	require.NotNil(t, m.host(hostName(maxHosts+9)))
	require.Len(t, m.cordons, 10)
	for i := range maxHosts {
		m.Step(Joined{Host: Host{Name: hostName(i + 10), Instance: "i", Slots: 1}, Now: now})
	}
	err := m.CheckJoin(Joined{Host: Host{Name: "one-more", Instance: "i"}, Now: now})
	require.ErrorContains(t, err, "the queue has reached its limit of 1900 hosts; no more can join")
	for i := range maxHosts {
		m.Step(Left{Name: hostName(i + 10), Instance: "i", Now: now})
	}
	require.Len(t, m.cordons, maxCordons)
	require.Empty(t, m.hosts)
}

func TestQueueIsBounded(t *testing.T) {
	m, now := New(), time.Unix(1000, 0)
	var last []Action
	for i := range maxWaiting + 1 {
		last = m.Step(Asked{Run: Run{fmt.Sprint(i), "1"}, Demand: Demand{Groups: []Group{{Tasks: 1}}}, Since: now, Now: now})
	}
	require.Equal(t, []Action{Grant{Run: Run{fmt.Sprint(maxWaiting), "1"}, Refusal: queueFull}}, last)
	require.Len(t, m.Front(3), 3)
	require.Equal(t, 3, m.Front(3)[2].Position)
	for i := range maxWaiting {
		m.Step(Freed{Run: Run{fmt.Sprint(i), "1"}, Now: now})
	}
	require.Empty(t, m.runs)
	require.Empty(t, m.Queue())
}

// In a large fleet each host sends fewer heartbeats, so that the total does not grow.
func TestBeat(t *testing.T) {
	for hosts, want := range map[int]time.Duration{1: 5 * time.Second, 200: 5 * time.Second, 1000: 25 * time.Second} {
		assert.Equal(t, want, HeartbeatInterval(hosts), "%d hosts", hosts)
	}
}

func TestWhoRefusesIsAskedAgainSoonAndThenSeldom(t *testing.T) {
	assert.Equal(t, 5*time.Second, refusalLasts(1))
	assert.Equal(t, 10*time.Second, refusalLasts(2))
	assert.Equal(t, 160*time.Second, refusalLasts(6))
	assert.Equal(t, 5*time.Minute, refusalLasts(7))
	assert.Equal(t, 5*time.Minute, refusalLasts(1_000_000))
}

func hostName(i int) string { return fmt.Sprintf("host-%03d", i) }

func aHost(i int) Host {
	h := Host{Name: hostName(i), Instance: "i", Slots: []int{8, 16, 32, 64}[i%4], Memory: 512 << 30, CPUs: 64}
	if i%2 == 0 {
		for range 8 {
			h.GPUs = append(h.GPUs, GPU{Model: []string{"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"}[i/2%2]})
		}
	}
	return h
}

// mixed returns a random kind of demand.
func mixed(r *rand.Rand) Demand {
	d := Demand{Groups: []Group{{Tasks: 1 << r.IntN(8)}}, Priority: 1 + r.IntN(5)}
	switch r.IntN(8) {
	case 0:
		d.Select = []string{"host-??[048]"}
		d.Groups[0] = Group{Tasks: min(32, d.Groups[0].Tasks), GPUs: 1 + r.IntN(8)}
	case 1:
		d.Select = []string{fmt.Sprintf("host-?%d?", r.IntN(10))}
	case 2:
		d.PerHost = 8
	case 3:
		d.Spread = true
	case 4:
		d.Exclusive = true
	case 5:
		d.Groups = []Group{{Tasks: 1}, {Tasks: min(32, d.Groups[0].Tasks), GPUs: 2}}
	case 6:
		d.MaxHosts = 1
		d.Groups[0].Tasks = min(64, d.Groups[0].Tasks)
	}
	if r.IntN(2) == 0 {
		d.MaxRunTime = time.Duration(1+r.IntN(600)) * time.Minute
	}
	return d
}
