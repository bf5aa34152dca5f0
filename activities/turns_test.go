package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// The tasks of a batch get their turns one after the other, in rank order; after too many failures,
// or too long a time, the others return to the sweep.
func TestTurns(t *testing.T) {
	run := runkey.Run{WorkflowID: "hp.0-9"}
	answer := func(w *waiting) any {
		select {
		case a := <-w.ready:
			return a
		default:
			return "waits"
		}
	}
	turns := newTurns()
	first := turns.join(run, "worker-3", 3)
	last := turns.join(run, "worker-5", 5)
	next := turns.join(run, "worker-4", 4)
	assert.Equal(t, []any{turnStarts, "waits", "waits"}, []any{answer(first), answer(last), answer(next)})
	turns.leave(run, first, true)
	assert.Equal(t, []any{turnStarts, "waits"}, []any{answer(next), answer(last)})

	turns.stop(run, []string{"worker-5", "worker-6"})
	late := turns.join(run, "worker-6", 6)
	assert.Equal(t, turnStopped, answer(last))
	turns.leave(run, last, false)
	turns.leave(run, next, true)
	assert.Equal(t, turnStopped, answer(late), "it came after the request")
	turns.leave(run, late, false)
	for range 4 {
		assert.NotEmpty(t, turns.byRun)
		turns.release(run)
	}
	assert.Empty(t, turns.byRun)

	one, two, three := turns.join(run, "worker-0", 0), turns.join(run, "worker-1", 1), turns.join(run, "worker-2", 2)
	turns.failed(run, new(1))
	assert.Equal(t, []any{turnStarts, "waits", "waits"}, []any{answer(one), answer(two), answer(three)})
	turns.failed(run, new(1))
	assert.Equal(t, []any{turnReturned, turnReturned}, []any{answer(two), answer(three)})
	turns.leave(run, two, false)
	turns.leave(run, three, false)
	slow := turns.join(run, "worker-3", 3)
	turns.overdue(run)
	assert.Equal(t, "waits", answer(slow))
	turns.byRun[run].began = time.Now().Add(-2 * batchLasts)
	turns.overdue(run)
	assert.Equal(t, turnReturned, answer(slow))
	turns.leave(run, slow, false)
	later := turns.join(run, "worker-7", 7)
	turns.leave(run, one, true)
	assert.Equal(t, turnReturned, answer(later))
	turns.leave(run, later, false)
	for range 5 {
		turns.release(run)
	}
	assert.Empty(t, turns.byRun)

	cancelled := turns.join(run, "worker-0", 0) // it has the turn when it is cancelled
	waits := turns.join(run, "worker-1", 1)
	turns.leave(run, cancelled, false)
	assert.Equal(t, turnStarts, answer(waits))
}

// Tasks that have ended report together: the last one of a batch lets the others report.
func TestTurnsReportTogether(t *testing.T) {
	run := runkey.Run{WorkflowID: "hp.0-9"}
	turns := newTurns()
	open := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return false
		default:
			return true
		}
	}
	one, two, three := turns.join(run, "worker-0", 0), turns.join(run, "worker-1", 1), turns.join(run, "worker-2", 2)
	turns.leave(run, one, true)
	first := turns.reported(run)
	turns.leave(run, two, true)
	second := turns.reported(run)
	assert.True(t, open(first) && open(second), "the third executes")
	turns.leave(run, three, true)
	assert.False(t, open(turns.reported(run)))
	assert.False(t, open(first) || open(second))

	four, five := turns.join(run, "worker-3", 3), turns.join(run, "worker-4", 4)
	turns.leave(run, four, true)
	<-turns.reported(run) // after a while, although the fifth executes
	turns.leave(run, five, true)
	assert.False(t, open(turns.reported(run)))
}
