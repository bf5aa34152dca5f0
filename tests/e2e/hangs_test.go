package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/hangs"
)

// The rank that holds the others up is named if there is one. `make bench` runs more hangs.
func TestWhoHoldsTheOthersUp(t *testing.T) {
	t.Parallel()
	for program, all := range map[string][]hangs.Hang{
		"python": {{Wait: "python", Deed: "computes", Ranks: 4, Guilty: 2}},
		"torch": {
			{Wait: "all_reduce", Deed: "load_batch_slowly", Ranks: 3, Guilty: 2},
			{Wait: "async_all_reduce", Deed: "waits_for_an_empty_queue", Ranks: 2, Guilty: 0}, // no line of Python is in a collective
		},
		"mpich": {
			{Wait: "recv", Deed: "locks_twice", Ranks: 3, Guilty: 1},
			{Wait: "barrier", Deed: "computes", Ranks: 3, Guilty: 0},
			{Wait: "recv", Deed: "nothing", Ranks: 3, Guilty: hangs.Nobody},
		},
	} {
		t.Run(program, func(t *testing.T) {
			if program != "python" {
				takesLong(t)
			}
			t.Parallel()
			l := newLocal(t)
			for i := range all {
				all[i].Program = program
			}
			s := hangs.NewStage(t, l.start, all...)
			if testing.Short() {
				all = all[:1]
			}
			for _, h := range all {
				found, _ := s.Play(h)
				// On a loaded machine native stacks may not be there in time.
				for try := 0; h.Guilty != hangs.Nobody && strings.HasPrefix(found.Sentence, "cannot tell") && try < 3; try++ {
					found, _ = s.Play(h)
				}
				var text strings.Builder
				assert.NoError(t, found.Write(&text))
				assert.Equal(t, h.Guilty != hangs.Nobody, h.Named(found), "%s\n%s", h, &text)
				if h.Guilty == hangs.Nobody {
					assert.Contains(t, text.String(), "cannot tell which task blocks the others")
				}
			}
		})
	}
}
