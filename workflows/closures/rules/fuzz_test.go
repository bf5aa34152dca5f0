package rules

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// CC-11: FuzzQueue interprets the bytes as events, and checks that each closure ends exactly once
// and that nothing is left over.
func FuzzQueue(f *testing.F) {
	for seed := range uint64(300) {
		random, steps := rand.New(rand.NewPCG(seed, 0)), make([]byte, 100)
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		s := newScript(t, 5)
		s.serve("a", "worker-0", "worker-1")
		ended := map[uint64]int{}
		var call *Call
		check := func() {
			t.Helper()
			s.carryOut()
			if call != nil && call.Ready() {
				a, err := call.Answer()
				require.NoError(t, err)
				for _, o := range a.Outcomes {
					if o.Kind == closure.OutcomeRaised {
						continue
					}
					ended[o.ID]++
					require.Equal(t, 1, ended[o.ID], "closure %d has ended twice", o.ID)
				}
				s.taken["c"] += uint64(len(a.Outcomes))
				s.scheduled["c"] = a.Scheduled // the others may be sent again
				call = nil
			}
			kept := map[uint64]bool{} // not taken yet
			for _, c := range s.Clients {
				for _, o := range c.Outcomes[min(uint64(len(c.Outcomes)), s.taken["c"]-c.Taken):] {
					kept[o.ID] = true
				}
			}
			bytes := 0
			ids := map[uint64]bool{}
			for _, it := range s.Waiting {
				bytes += it.Size()
				ids[it.ID] = true
			}
			require.Equal(t, bytes, s.bytes)
			require.True(t, slices.IsSortedFunc(s.Waiting, func(a, b *Item) int { return int(a.ID) - int(b.ID) }))
			for _, b := range s.Batches {
				for _, it := range b.Items {
					require.False(t, ids[it.ID], "closure %d is there twice", it.ID)
					ids[it.ID] = true
				}
			}
			require.Len(t, s.running, len(s.Batches))
			for id := uint64(1); id <= s.Last; id++ {
				require.True(t, ids[id] != (ended[id] == 1 || kept[id]), "closure %d is lost", id)
			}
			require.Equal(t, s.Counts.Scheduled, s.Last)
		}
		result := func(how byte) (r closure.BatchResult) {
			for i, it := range s.running[0].Items {
				switch kind := (int(how) + i) % 7; {
				case kind == 1:
					r.Outcomes = append(r.Outcomes, failure(it.ID, "no"))
				case kind == 2:
					r.Outcomes = append(r.Outcomes, lost(it.ID))
				case kind == 3:
					r.Outcomes = append(r.Outcomes, unavailable(it.ID, "ps-0"))
				case kind == 4 && !s.running[0].Calling:
					r.Returned = append(r.Returned, it.ID)
				case kind == 5:
					r.Calling, r.Queue = append(r.Calling, it.ID), "queue of a"
				default:
					r.Outcomes = append(r.Outcomes, value(it.ID))
				}
			}
			return r
		}
		for _, step := range steps {
			how := step / 8
			switch step % 8 {
			case 0, 1:
				if call == nil || len(call.Closures) == 0 {
					s.lone = how%3 == 0
					call = s.schedule([]string{"f", "g"}[how%2], 1+int(how)%12)
				}
			case 2:
				if call == nil || len(call.Closures) == 0 {
					call = s.request(closure.SyncRequest{Client: "c", Join: how%2 == 0, Wait: how%3 > 0})
				}
			case 3, 4, 5:
				if len(s.running) > 0 {
					s.ends(result(how))
				}
			case 6:
				if len(s.running) > 0 {
					s.fails()
				}
			case 7:
				s.Suspend()
				for len(s.running) > 0 {
					s.ends(result(how))
				}
				s.continues()
				if call != nil { // its closures are sent again
					s.scheduled["c"] -= uint64(len(call.Closures))
					call = s.request(closure.SyncRequest{Client: "c", Closures: call.Closures})
				}
			}
			check()
		}
		for range 100 {
			if s.all(); call == nil {
				call = s.poll()
			}
			s.all()
			check()
		}
		require.Empty(t, s.Batches)
		require.Empty(t, s.Waiting)
	})
}
