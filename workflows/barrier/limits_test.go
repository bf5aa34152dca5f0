package barrier

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (r *Round) arrives(task, key string) []Answer {
	return r.Step(Arrived{Host: "a", Task: task, Key: key, Digest: r.digest, Now: time.Unix(1, 0)})
}

// A round is bounded: an arrival of a task that has too many is refused, and the round
// continues without it.
func TestTooManyArrivalsOfATask(t *testing.T) {
	r := New([]string{"worker-0", "worker-1"}, time.Unix(0, 0))
	for i := range maxKeys {
		require.Empty(t, r.arrives("worker-0", fmt.Sprint("k", i)))
	}
	require.Equal(t, []Answer{{Task: "worker-0", Key: "one more", Host: "a", Refused: spec.BarrierTooMany}}, r.arrives("worker-0", "one more"))
	require.Len(t, r.arrives("worker-0", "one more"), 1, "whoever asks again is told again")
	refusal := spec.BarrierRefusal{Task: "worker-0", Key: "one more", Why: spec.BarrierTooMany}
	require.Equal(t, []spec.BarrierRefusal{refusal}, r.Status().Refused)
	require.Empty(t, r.arrives("worker-0", "k0"), "the same again is no other one")

	// A withdrawal makes room.
	r.Step(Withdrawn{Task: "worker-0", Key: "k0", Now: time.Unix(2, 0)})
	require.Empty(t, r.arrives("worker-0", "in its place"))

	answers := r.arrives("worker-1", "k")
	require.Len(t, answers, maxKeys+1)
	require.Equal(t, spec.BarrierReleased, r.Result().State)
	require.Len(t, r.Result().Arrived["worker-0"], maxKeys)
	require.Equal(t, []spec.BarrierRefusal{refusal}, r.Result().Refused)
	require.Equal(t, []string{"worker-0", "worker-1"}, r.Result().Participants)

	// And in the moment of closing.
	late := r.arrives("worker-0", "late")
	require.Equal(t, []Answer{{Task: "worker-0", Key: "late", Host: "a", Refused: spec.BarrierTooMany}}, late)
	require.Len(t, r.Result().Refused, 2)
}

func TestRefusalsAreBounded(t *testing.T) {
	r := New([]string{"worker-0", "worker-1"}, time.Unix(0, 0))
	for i := range maxRefused + 10 {
		e := Arrived{Host: "a", Task: "worker-0", Key: fmt.Sprint("k", i), Digest: "another"}
		require.Equal(t, []Answer{{Task: "worker-0", Key: e.Key, Host: "a", Refused: spec.BarrierOthers}}, r.Step(e))
	}
	require.Len(t, r.Status().Refused, maxRefused)
}
