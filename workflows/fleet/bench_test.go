package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkDecide measures a decision where 1,000 runs wait for room on 200 hosts, and
// most of it is in use: a run ends, and one more asks.
func BenchmarkDecide(b *testing.B) {
	for _, kind := range []struct {
		name   string
		demand func(r *rand.Rand) Demand
	}{
		{"mixed", mixed},
		{"alike", func(*rand.Rand) Demand { return Demand{Groups: []Group{{Tasks: 16}}} }},
		{"pinned", func(r *rand.Rand) Demand {
			return Demand{Groups: []Group{{Tasks: 8, Host: hostName(r.IntN(200))}}, MaxRunTime: time.Hour}
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same ones each time
			m, now := New(), time.Unix(1000, 0)
			for i := range 200 {
				m.Step(Joined{Host: benchHost(i), Now: now})
			}
			runs := 0
			ask := func() {
				runs++
				m.Step(Asked{Run: Run{fmt.Sprint("run-", runs), "1"}, Demand: kind.demand(random), Since: now, Now: now})
				for _, r := range slices.Clone(m.granted) {
					m.Step(Placed{Run: r.id, Generation: r.generation, Now: now})
				}
			}
			for len(m.waiting) < 1000 {
				ask()
			}
			var took []time.Duration
			for b.Loop() {
				now = now.Add(time.Second)
				for _, e := range []Event{Freed{Run: anyHeld(m, random), Now: now}, Asked{Run: Run{fmt.Sprint("run-", runs), "2"}, Demand: kind.demand(random), Since: now, Now: now}} {
					started := time.Now()
					m.Step(e)
					took = append(took, time.Since(started))
				}
				b.StopTimer()
				runs++
				for _, r := range slices.Clone(m.granted) {
					m.Step(Placed{Run: r.id, Generation: r.generation, Now: now})
				}
				for len(m.waiting) < 1000 {
					ask()
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/decision")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
		})
	}
}

func hostName(i int) string { return fmt.Sprintf("host-%03d", i) }

func benchHost(i int) Host {
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

func anyHeld(m *Machine, r *rand.Rand) Run {
	for i := r.IntN(len(m.hosts)); ; i = (i + 1) % len(m.hosts) {
		if h := m.hosts[i]; len(h.holds) > 0 {
			return h.holds[r.IntN(len(h.holds))].Run
		}
	}
}

// BenchmarkQueue measures the answer to all waiting runs.
func BenchmarkQueue(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same ones each time
	m, now := New(), time.Unix(1000, 0)
	for i := range 200 {
		m.Step(Joined{Host: benchHost(i), Now: now})
	}
	for i := 0; len(m.waiting) < 1000; i++ {
		m.Step(Asked{Run: Run{fmt.Sprint("run-", i), "1"}, Demand: mixed(random), Since: now, Now: now})
	}
	for b.Loop() {
		m.Queue()
	}
}
