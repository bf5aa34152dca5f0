package rules

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// mill is a queue with hosts that call everything at once.
type mill struct {
	queue *Queue
	batch uint64
	done  int
}

func newMill(hosts, slots int) *mill {
	m := &mill{queue: New(Config{QueueSize: spec.DefaultQueueSize})}
	for i := range hosts {
		name := fmt.Sprintf("host-%03d", i)
		m.queue.Serving(closure.ServingMessage{Host: name, Queue: "q/" + name, Seq: 1, Serving: []closure.ServingTask{
			{Task: spec.TaskName("worker", i), Slots: slots, Functions: []string{"step"}},
		}})
	}
	return m
}

// schedule asks for n closures more.
func (m *mill) schedule(n int) {
	m.batch++
	r := closure.ScheduleRequest{Client: "c", Batch: m.batch, Closures: make([]closure.Closure, n)}
	for i := range r.Closures {
		r.Closures[i] = closure.Closure{Function: "step", Args: []byte("[12345]")}
	}
	if err := m.queue.CheckSchedule(r); err != nil {
		panic(err)
	}
	m.queue.Schedule(r)
}

// turn calls all closures that are given out now.
func (m *mill) turn() {
	for _, a := range m.queue.Actions() {
		d, ok := a.(Dispatch)
		if !ok {
			continue
		}
		r := closure.LeaseResult{Idle: true, Outcomes: make([]closure.Outcome, len(d.Closures))}
		for i, c := range d.Closures {
			r.Outcomes[i] = closure.Outcome{ID: c.ID, Value: c.Args, Task: "worker-0"}
		}
		m.queue.LeaseEnded(d.Number, r)
		m.done += len(d.Closures)
	}
}

// run schedules and calls n closures more, in batches of 500.
func (m *mill) run(n int) {
	for scheduled, goal := 0, m.done+n; m.done < goal; m.turn() {
		if scheduled < n {
			m.schedule(min(500, n-scheduled))
			scheduled += 500
		}
	}
}

// BenchmarkClosures measures the cost of a closure from schedule, its check included, to its
// outcome.
func BenchmarkClosures(b *testing.B) {
	for _, hosts := range []int{1, 4, 100, 1000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			newMill(hosts, 4).run(b.N)
		})
	}
}

// BenchmarkDeepQueue does the same, with all closures queued before any is called.
func BenchmarkDeepQueue(b *testing.B) {
	b.ReportAllocs()
	for left := b.N; left > 0; left -= 100_000 {
		m := newMill(4, 4)
		for range 100 {
			m.schedule(1000)
		}
		for m.done < min(left, 100_000) {
			m.turn()
		}
	}
}

// Ended closures leave nothing: a queue is as large after hundreds of thousands as after a few.
func TestMemoryIsFlat(t *testing.T) {
	m := newMill(4, 4)
	heap := func() int {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc)
	}
	m.run(50_000)
	before := heap()
	m.run(300_000)
	after := heap()
	t.Logf("heap: %d KiB after 50,000 closures, %d KiB after 350,000", before>>10, after>>10)
	require.Less(t, after-before, 1<<20)
	runtime.KeepAlive(m)
}
