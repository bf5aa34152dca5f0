package rules

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// packed returns the text of a snapshot as the workflow packs it, and the queue that it
// brings back.
func packed(t testing.TB, q *Queue) ([]byte, *Queue) {
	t.Helper()
	snapshot := must.Get(q.Snapshot())(t)
	var text, b bytes.Buffer
	z := gzip.NewWriter(&b)
	e := json.NewEncoder(io.MultiWriter(&text, z))
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(snapshot))
	require.NoError(t, z.Close())
	read := must.JSON[Snapshot](t, text.Bytes())
	return b.Bytes(), Restore(q.config, &read)
}

// snapshotOf is packed, and logs how large a queue was.
func snapshotOf(t *testing.T, q *Queue) ([]byte, *Queue) {
	t.Helper()
	q.Suspend(true)
	q.Actions()
	begin := time.Now()
	snapshot, again := packed(t, q)
	c := q.Status().Counts
	t.Logf("%d queued and %d held, %d KiB: %d KiB as a snapshot, packed and unpacked in %v",
		c.Queued, c.Executing, c.Bytes>>10, len(snapshot)>>10, time.Since(begin))
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
			return q.queued.all
		}
	}
}

// The snapshot of a full queue fits: an update and the input of a workflow take 2 MiB.
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
	t.Run("for certain tasks", func(t *testing.T) {
		q := New(config)
		fill(q, 100_000, func(i int) closure.Closure {
			return closure.Closure{Function: "add", Task: spec.TaskName("worker", i%1000)}
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
			return closure.Closure{Function: "add", Args: []byte(`["` + noise(4000) + `"]`)}
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

// A snapshot before all actions were taken is an error, since it would lose them.
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
