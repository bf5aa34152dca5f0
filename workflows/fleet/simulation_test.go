package fleet

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSimulation sends 10,000 runs of all kinds to 200 hosts, which fall silent, come back,
// some of them empty, are cordoned, and refuse. No host may get too much, and every run must
// start within a day of simulated time.
func TestSimulation(t *testing.T) {
	s := newSimulated(t, 200)
	runs := 10_000
	if testing.Short() {
		runs = 1000
	}
	for range runs {
		s.arrive()
	}
	for range runs / 50 {
		s.fail()
	}
	s.run()
	require.Equal(t, s.arrived, s.ended+s.impossible)
	require.Empty(t, s.machine.Queue())
	require.Empty(t, s.machine.runs, "a run that has ended is kept")
	for _, h := range s.machine.Hosts() {
		require.Zero(t, h.Used, h.Name)
	}
	require.Less(t, s.longest, 24*time.Hour)
	t.Logf("%d runs, of which %d could never start, in %s; %d refusals, %d runs lost a host; the longest wait took %s, the mean %s; at most %d waited",
		s.arrived, s.impossible, s.now.Sub(simulationStart), s.refusals, s.lost, s.longest, s.waited/time.Duration(s.ended), s.mostWaiting)
}

var simulationStart = time.Unix(0, 0)

type simulated struct {
	t       *testing.T
	random  *rand.Rand
	machine *Machine
	now     time.Time
	next    simulatedEvents
	hosts   []Host
	runs    map[Run]*simulatedRun
	// holds maps hosts to the places that runs really hold there.
	holds map[string]map[Run]Holding
	// asking is the time at which the next run arrives, and failing the time at which the next
	// host fails.
	asking, failing time.Time

	numbered, arrived, ended, impossible, refusals, lost, mostWaiting int

	longest, waited time.Duration
}

type simulatedRun struct {
	id         Run
	demand     Demand
	generation int
	since      time.Time
	takes      time.Duration
	hosts      []string
	running    bool
}

type simulatedEvent struct {
	at     time.Time
	number int
	do     func()
}

type simulatedEvents []simulatedEvent

func (q simulatedEvents) Len() int { return len(q) }
func (q simulatedEvents) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].number < q[j].number
}
func (q simulatedEvents) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simulatedEvents) Push(e any)   { *q = append(*q, e.(simulatedEvent)) }
func (q *simulatedEvents) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}

func newSimulated(t *testing.T, hosts int) *simulated {
	s := &simulated{
		t: t, random: rand.New(rand.NewPCG(3, 4)), machine: New(), now: simulationStart,
		runs: map[Run]*simulatedRun{}, holds: map[string]map[Run]Holding{},
	}
	for i := range hosts {
		h := aHost(i)
		s.hosts = append(s.hosts, h)
		s.holds[h.Name] = map[Run]Holding{}
		s.step(Joined{Host: h, Now: s.now})
	}
	s.asking, s.failing = s.now.Add(time.Minute), s.now.Add(time.Minute)
	return s
}

func (s *simulated) at(t time.Time, do func()) {
	s.numbered++
	heap.Push(&s.next, simulatedEvent{t, s.numbered, do})
}

func (s *simulated) after(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

func (s *simulated) run() {
	for len(s.next) > 0 {
		e := heap.Pop(&s.next).(simulatedEvent)
		s.now = e.at
		e.do()
		s.mostWaiting = max(s.mostWaiting, len(s.machine.waiting))
		if wake := s.machine.Wake(); !wake.IsZero() && len(s.next) == 0 {
			s.at(wake, func() { s.step(Passed{Now: s.now}) })
		}
	}
}

// arrive adds a run that asks for hosts.
func (s *simulated) arrive() {
	s.asking = s.asking.Add(time.Duration(s.random.IntN(46)) * time.Second)
	s.arrived++
	r := &simulatedRun{id: Run{fmt.Sprint("run-", s.arrived), "1"}, demand: mixed(s.random)}
	s.at(s.asking, func() {
		s.runs[r.id] = r
		r.since = s.now
		r.takes = time.Duration(1+s.random.IntN(60)) * time.Minute
		if r.demand.MaxRunTime > 0 {
			r.takes = min(r.takes, r.demand.MaxRunTime)
		}
		s.step(Asked{Run: r.id, Demand: r.demand, Since: r.since, Now: s.now})
	})
}

// fail makes one host fail, in one of several ways.
func (s *simulated) fail() {
	s.failing = s.failing.Add(time.Duration(s.random.IntN(20)) * time.Minute)
	h := s.hosts[s.random.IntN(len(s.hosts))]
	away := time.Duration(1+s.random.IntN(30)) * time.Minute
	switch s.random.IntN(4) {
	case 0: // it was cut off
		s.at(s.failing, func() {
			s.step(Silent{Name: h.Name, Instance: h.Instance, Now: s.now})
			s.after(away, func() { s.join(h) })
		})
	case 1: // it booted
		s.at(s.failing, func() {
			s.step(Silent{Name: h.Name, Instance: h.Instance, Now: s.now})
			s.after(away, func() {
				for _, r := range s.on(h.Name) {
					s.lose(r, h.Name)
				}
				s.join(h)
			})
		})
	case 2: // it ends in order
		s.at(s.failing, func() {
			for _, r := range s.on(h.Name) {
				s.lose(r, h.Name)
			}
			s.step(Left{Name: h.Name, Instance: h.Instance, Now: s.now})
			s.after(away, func() { s.join(h) })
		})
	default:
		s.at(s.failing, func() {
			s.step(Cordoned{Name: h.Name, Now: s.now})
			s.after(away, func() { s.step(Uncordoned{Name: h.Name, Now: s.now}) })
		})
	}
}

func (s *simulated) join(h Host) {
	j := Joined{Host: h, Now: s.now}
	for _, r := range s.on(h.Name) {
		j.Holds = append(j.Holds, s.holds[h.Name][r.id])
	}
	s.step(j)
}

// on returns the runs that hold a place on a host, in the order of their numbers.
func (s *simulated) on(host string) (list []*simulatedRun) {
	for i := range s.arrived {
		id := Run{fmt.Sprint("run-", i+1), "1"}
		if _, there := s.holds[host][id]; there {
			list = append(list, s.runs[id])
		}
	}
	return list
}

// lose removes a run from a host. The run asks for its next generation.
func (s *simulated) lose(r *simulatedRun, host string) {
	delete(s.holds[host], r.id)
	if !r.running {
		return
	}
	s.lost++
	r.running = false
	r.generation++
	r.since = s.now
	r.demand.Prefer = r.hosts
	s.step(Asked{Run: r.id, Generation: r.generation, Demand: r.demand, Since: r.since, Now: s.now})
}

func (s *simulated) step(e Event) {
	for _, a := range s.machine.Step(e) {
		switch a := a.(type) {
		case Grant:
			s.granted(a)
		case Return:
			for _, h := range s.hosts {
				held := s.holds[h.Name]
				if _, there := held[a.Run]; there {
					s.after(time.Second, func() {
						if !s.runs[a.Run].running {
							delete(held, a.Run)
							s.step(Freed{Run: a.Run, Host: h.Name, Now: s.now})
						}
					})
				}
			}
		}
	}
}

func (s *simulated) granted(g Grant) {
	r := s.runs[g.Run]
	if g.Refusal != "" {
		require.Error(s.t, s.machine.Impossible(r.demand), g.Refusal)
		s.impossible++
		return
	}
	if s.random.IntN(50) == 0 {
		s.refusals++
		at := g.Places[s.random.IntN(len(g.Places))].Host
		s.after(time.Second, func() {
			s.step(Refused{Run: g.Run, Generation: g.Generation, Try: g.Try, Host: at, Reason: "no ports", Now: s.now})
		})
		return
	}
	s.after(time.Second, func() { s.place(r, g) })
}

// place places a grant on its hosts, if they answer, and ends the run after a while.
func (s *simulated) place(r *simulatedRun, g Grant) {
	for _, p := range g.Places {
		if h := s.machine.host(p.Host); h == nil || h.silent {
			s.step(Refused{Run: g.Run, Generation: g.Generation, Try: g.Try, Host: p.Host, Reason: "it does not answer", Now: s.now})
			return
		}
	}
	for _, held := range s.holds {
		delete(held, r.id)
	}
	r.hosts, r.running = nil, true
	for _, p := range g.Places {
		held := Holding{Run: r.id, Generation: g.Generation, Exclusive: r.demand.Exclusive, Devices: p.Devices}
		for _, ranks := range p.Ranks {
			held.Tasks += ranks.End - ranks.First
		}
		r.hosts = append(r.hosts, p.Host)
		s.holds[p.Host][r.id] = held
		s.check(p.Host)
	}
	wait := s.now.Sub(r.since)
	s.longest, s.waited = max(s.longest, wait), s.waited+wait
	s.step(Placed{Run: r.id, Generation: g.Generation, Now: s.now})
	s.after(r.takes, func() {
		if !r.running || r.generation != g.Generation {
			return // it lost a host
		}
		for _, held := range s.holds {
			delete(held, r.id)
		}
		s.ended++
		s.step(Freed{Run: r.id, Now: s.now})
	})
}

// check compares the places held on a host with its resources.
func (s *simulated) check(name string) {
	used, gpus, alone := 0, map[string]bool{}, false
	h := s.machine.host(name)
	for _, held := range s.holds[name] {
		used, alone = used+held.Tasks, alone || held.Exclusive
		for _, device := range held.Devices {
			if gpus[device] || !h.knows([]string{device}) {
				s.t.Fatalf("%s has no GPU %s, or two runs do", name, device)
			}
			gpus[device] = true
		}
	}
	if used > h.Slots || alone && len(s.holds[name]) > 1 {
		s.t.Fatalf("%s has %d of %d slots, %d runs", name, used, h.Slots, len(s.holds[name]))
	}
}

func hostName(i int) string { return fmt.Sprintf("host-%03d", i) }

func aHost(i int) Host {
	h := Host{Name: hostName(i), Instance: "i", Slots: []int{8, 16, 32, 64}[i%4], Memory: 512 << 30, CPUs: 64, Labels: map[string]string{"rack": fmt.Sprint("r", i/20)}}
	if i%2 == 0 {
		for range 8 {
			h.GPUs = append(h.GPUs, GPU{Model: []string{"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"}[i/2%2], Memory: 80 << 30})
		}
	}
	return h
}

// mixed returns a demand of a random kind.
func mixed(r *rand.Rand) Demand {
	d := Demand{Groups: []Group{{Tasks: 1 << r.IntN(8)}}, Priority: 1 + r.IntN(5)}
	switch r.IntN(8) {
	case 0:
		d.Constraints = []string{"gpu.model == H100"}
		d.Groups[0] = Group{Tasks: min(32, d.Groups[0].Tasks), GPUs: 1 + r.IntN(8)}
	case 1:
		d.Constraints = []string{fmt.Sprint("rack == r", r.IntN(10))}
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
