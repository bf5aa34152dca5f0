package rules

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// noise is text that packs as badly as any that can be printed.
type noise struct{ *rand.Rand }

func (r noise) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		if c := byte(' ' + 1 + r.IntN(94)); c != '"' && c != '\\' {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (r noise) word(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte{letters[r.IntN(26)]}
	for len(b) < n {
		b = append(b, letters[r.IntN(len(letters))])
	}
	return string(b)
}

// worst is a queue in which everything bounded except its closures is full of noise.
func worst(r noise) *Queue {
	q := New(ConfigOf(closure.QueueInput{}))
	// Each task has other functions, of more than can be remembered.
	var names []string
	for range 3000 {
		names = append(names, r.text(30))
	}
	for i := range 1000 {
		m := closure.ServingMessage{Host: r.word(63), Queue: "clusterrun/host/" + r.word(72), Seq: 1 << 50, Broker: r.word(26)}
		task := closure.ServingTask{Task: spec.TaskName(r.word(20), i), Process: r.text(64), Slots: 1 + r.IntN(1000)}
		for _, name := range names {
			if r.IntN(2) > 0 {
				task.Functions = append(task.Functions, name)
			}
		}
		m.Serving = []closure.ServingTask{task}
		q.Serving(m)
	}
	for i := range uint64(2 * maxClients) {
		c := q.clients.asking(r.text(closure.MaxFunctionName))
		c.epoch = r.Uint64()
		call := &Call[closure.WaitAnswer]{}
		c.waits.add(r.Uint64(), call)
		q.answerWait(&request{client: c, number: c.waits.list[0].number, wait: call}, &closure.Error{Message: r.text(100), Closure: i}, true)
	}
	for i := uint64(1); q.keys.hasRoom(60 + keyBytes); i++ {
		q.keys.add(r.text(60), i)
		q.lastID = i
	}
	for i := range uint64(maxResources) {
		if _, err := q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: r.text(10), Args: []byte(`["` + r.text(10) + `"]`)}}); err != nil {
			break
		}
	}
	for range 2 * maxPeers {
		q.peers.count(r.text(closure.MaxFunctionName))
	}
	q.fault = bounded(&closure.Error{Kind: r.text(1000), Message: r.text(10_000), Traceback: r.text(20_000), Task: r.text(1000)})
	return q
}

// A queue can continue as new in any state, if not at once, then when its closures have ended:
// a server takes 2 MiB of input, and ends a workflow that gives more. The rest of the state has
// to fit for that, and leave room.
func TestTheWorstSnapshotFits(t *testing.T) {
	r := noise{rand.New(rand.NewPCG(1, 2))}
	q := worst(r)
	snapshot, _ := snapshotOf(t, q)
	t.Logf("%d KiB", len(snapshot)>>10)
	assert.Less(t, len(snapshot), 1850<<10)

	r = noise{rand.New(rand.NewPCG(1, 2))}
	q = New(ConfigOf(closure.QueueInput{}))
	fill(q, spec.DefaultQueueSize, func(int) closure.Closure {
		return closure.Closure{Function: "f", Args: []byte(`["` + r.text(1000) + `"]`)}
	})
	snapshot, _ = snapshotOf(t, q)
	assert.Less(t, len(snapshot), 1400<<10, "closures that are worth nothing but arguments")
}

// A lease is the input of an activity, for which a server takes 2 MiB as well.
func TestTheWorstLeaseFits(t *testing.T) {
	r := noise{rand.New(rand.NewPCG(1, 2))}
	q := New(Config{})
	for i := range uint64(maxResources) {
		_, err := q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: r.text(1), Args: []byte(`["` + r.text(20) + `"]`)}})
		assert.NoError(t, err)
	}
	q.Serving(closure.ServingMessage{Host: "h", Queue: "q", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: closure.MaxBatch}}})
	q.lastID = 1 << 50
	batch := closure.ScheduleRequest{Client: "c", Batch: 1}
	for range closure.MaxBatch {
		c := closure.Closure{Function: r.text(1), Args: []byte(`["` + r.text(350) + `"]`), Options: &closure.Options{
			Key: r.text(100), Timeout: closure.TimeoutOf(time.Duration(r.Int64N(3e17))), MaxLosses: new(r.Int()), Detached: true,
		}}
		for range closure.MaxResources {
			c.Resources = append(c.Resources, 1+r.Uint64N(maxResources))
		}
		batch.Closures = append(batch.Closures, c)
	}
	assert.NoError(t, batch.Validate())
	q.Schedule(batch)
	most := 0
	for _, a := range q.Actions() {
		d := a.(Dispatch)
		text, err := json.Marshal(closure.Lease{Queue: "queue", Closures: d.Closures, Resources: d.Resources})
		assert.NoError(t, err)
		t.Logf("%d closures: %d KiB", len(d.Closures), len(text)>>10)
		most = max(most, len(text))
	}
	assert.Greater(t, most, 1<<20, "the test is of a large lease")
	assert.Less(t, most, 2<<20)
}
