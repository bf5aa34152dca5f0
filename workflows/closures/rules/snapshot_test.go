package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// snapshotOf packs and unpacks a queue, and says how large it was.
func snapshotOf(t *testing.T, q *Queue) ([]byte, *Queue) {
	t.Helper()
	q.Quiet(true)
	q.Actions()
	begin := time.Now()
	snapshot, err := q.Snapshot()
	require.NoError(t, err)
	packed := time.Since(begin)
	begin = time.Now()
	again, err := Restore(q.config, snapshot)
	require.NoError(t, err)
	c := q.Status().Counts
	t.Logf("%d queued and %d held, %d KiB: %d KiB as a snapshot, packed in %v, unpacked in %v",
		c.Queued, c.Executing, c.Bytes>>10, len(snapshot)>>10, packed, time.Since(begin))
	require.Equal(t, q.Status().Counts, again.Status().Counts)
	return snapshot, again
}

// fill schedules closures until there are n or the queue is full.
func fill(q *Queue, n int, next func(i int) closure.Closure) int {
	for i, batch := 0, uint64(1); ; batch++ {
		r := closure.ScheduleRequest{Client: "c", Batch: batch}
		for size := 0; len(r.Closures) < closure.MaxBatch && i < n; i++ {
			c := next(i)
			if size += c.Size(); size > closure.MaxBatchBytes {
				break
			}
			r.Closures = append(r.Closures, c)
		}
		if len(r.Closures) == 0 || !q.Schedule(r).Ready() {
			return q.queued
		}
	}
}

// What a full queue comes to: an update and the input of a workflow take 2 MiB.
func TestSnapshotSizes(t *testing.T) {
	config := ConfigOf(closure.QueueInput{})
	random := rand.New(rand.NewPCG(1, 2))
	t.Run("all alike", func(t *testing.T) {
		q := New(config)
		require.Equal(t, 150_000, fill(q, 150_000, func(int) closure.Closure {
			return closure.Closure{Function: "add", Args: []byte("[12345]")}
		}))
		snapshot, _ := snapshotOf(t, q)
		require.Less(t, len(snapshot), 64<<10)
	})
	t.Run("different numbers", func(t *testing.T) {
		q := New(config)
		require.Equal(t, 150_000, fill(q, 150_000, func(int) closure.Closure {
			return closure.Closure{Function: "add", Args: fmt.Appendf(nil, "[%d]", 10_000+random.IntN(90_000))}
		}))
		snapshot, _ := snapshotOf(t, q)
		require.Less(t, len(snapshot), 1200<<10)
	})
	t.Run("pinned with keys", func(t *testing.T) {
		q := New(config)
		fill(q, 100_000, func(i int) closure.Closure {
			return closure.Closure{Function: "add", Options: &closure.Options{Detached: true, Task: spec.TaskName("worker", i%1000), Key: fmt.Sprint("k", i)}}
		})
		snapshot, _ := snapshotOf(t, q)
		require.Less(t, len(snapshot), 1200<<10)
	})
	// Everything that is bounded by bytes is full of text that cannot be packed.
	t.Run("noise", func(t *testing.T) {
		q := New(config)
		noise := func(n int) string {
			var b strings.Builder
			for b.Len() < n {
				b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[random.IntN(64)])
			}
			return b.String()
		}
		fill(q, 100_000, func(i int) closure.Closure {
			return closure.Closure{Function: "add", Args: []byte(`["` + noise(4000) + `"]`), Options: &closure.Options{Key: noise(100)}}
		})
		for i := range uint64(100) {
			_, err := q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: "add", Args: []byte(`["` + noise(2600) + `"]`)}})
			if err != nil {
				break
			}
		}
		for i := range 300 {
			client := &request{client: q.clients.asking(noise(190)), number: 1, wait: &Call[closure.WaitAnswer]{}}
			client.client.waits.add(1, client.wait)
			q.answerWait(client, &closure.Error{Message: noise(closure.MaxError), Traceback: noise(closure.MaxTraceback), Closure: uint64(i)}, true)
		}
		snapshot, _ := snapshotOf(t, q)
		require.Less(t, len(snapshot), 2<<20)
	})
}

// A damaged snapshot is an error, and not a panic or a queue that is wrong.
func TestDamagedSnapshots(t *testing.T) {
	m := newMill(2, 2)
	m.schedule(50)
	m.queue.Actions()
	snapshot, _ := snapshotOf(t, m.queue)
	for i := range snapshot {
		damaged := append([]byte(nil), snapshot...)
		damaged[i] ^= 0x55
		// The name of the file and such in the head of the form mean nothing.
		if q, err := Restore(m.queue.config, damaged); err == nil {
			require.Equal(t, m.queue.Status().Counts, q.Status().Counts, i)
		}
		_, err := Restore(m.queue.config, snapshot[:i])
		require.Error(t, err, i)
	}
	_, err := Restore(m.queue.config, nil)
	require.ErrorContains(t, err, "no snapshot of a queue")
}

// FuzzRestore gives it parts that contradict each other, with a checksum that is right.
func FuzzRestore(f *testing.F) {
	m := newMill(2, 2)
	m.schedule(5)
	m.queue.Actions()
	m.queue.Join(closure.WaitRequest{Client: "c", Call: 1})
	snapshot, err := m.queue.Snapshot()
	require.NoError(f, err)
	head, columns, err := decompress(snapshot)
	require.NoError(f, err)
	for i := range columns {
		f.Add(head, i, columns[i].bytes)
		f.Add(head, i, append([]byte{200, 200, 200, 200, 200, 200, 200, 200, 200, 1}, columns[i].bytes...))
	}
	f.Add([]byte(`{"last_id":5,"drain":{"client":"x"},"fault":{"message":""}}`), 0, []byte{1})
	f.Add([]byte(`{"last_id":5,"options":[null],"functions":[""],"clients":[{"name":"x"}],"entering":{"client":"x"}}`), 5, []byte{1})
	f.Add([]byte(`{}`), 0, []byte{})
	f.Add([]byte(`{"last_id":5,"last_resource":2,"owners":[{"c":"x"}],"resources":[{"i":1,"f":"f","o":0},{"i":2,"f":"f","o":0}]}`), 11, []byte{1, 2})
	f.Add([]byte(`{"last_id":5,"last_resource":9,"owners":[{"c":"x"}],"resources":[{"i":2,"f":"f","o":0,"x":true}],"hosts":[{"name":"h","queue":"q","given":[1,9],"gone":[3,9]}]}`), 11, []byte{1, 2})
	f.Fuzz(func(t *testing.T, head []byte, at int, bytes []byte) {
		var parts [columnCount][]byte
		for i := range columns {
			parts[i] = columns[i].bytes
		}
		parts[((at%columnCount)+columnCount)%columnCount] = bytes
		packed, err := compress(head, parts)
		if err != nil {
			t.Skip()
		}
		q, err := Restore(Config{QueueSize: 2}, packed)
		if err != nil {
			return
		}
		// Whatever it is, it does not break.
		q.Serving(closure.ServingMessage{Host: "new", Queue: "new", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-9", Slots: 2, Functions: []string{"step"}}}})
		for _, a := range q.Actions() {
			if d, ok := a.(Dispatch); ok {
				q.LeaseEnded(d.Lease, closure.LeaseResult{})
			}
		}
		q.Join(closure.WaitRequest{Client: "y", Call: 1})
		q.Status()
		q.RunEnded("")
		q.Actions()
		_, err = q.Snapshot()
		require.NoError(t, err)
	})
}

// A snapshot with decisions that nobody has written down would lose them.
func TestSnapshotNeedsActionsTaken(t *testing.T) {
	q := New(Config{})
	q.Schedule(closure.ScheduleRequest{Client: "c", Batch: 1, Closures: []closure.Closure{{Function: "f"}}})
	q.Cancel(closure.CancelRequest{})
	_, err := q.Snapshot()
	assert.ErrorContains(t, err, "before all actions were taken")
	q.Actions()
	_, err = q.Snapshot()
	assert.NoError(t, err)
}
