package taskapi

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// Of 100,000 requests of a task, a few are handled at once and five a second from then on, over
// any number of connections.
func TestATaskAsksItsRunAtAPace(t *testing.T) {
	var p pace
	start := time.Unix(1e9, 0)
	at, turns, most := start, 0, 30*time.Second
	for range 100_000 {
		wait, ok := p.turn(at, most)
		assert.LessOrEqual(t, wait, most)
		if ok {
			turns++
		}
		at = at.Add(time.Millisecond)
	}
	took := at.Sub(start)
	assert.InDelta(t, float64((took+most)/askEvery)+askAtOnce, float64(turns), 2)

	// After a quiet while, the next request is handled at once again.
	wait, ok := p.turn(at.Add(time.Hour), most)
	assert.True(t, ok)
	assert.Zero(t, wait)
}

func TestStopAndClearInAFlood(t *testing.T) {
	h := newHostWith(t, 2, newTogether())
	h.restartWith(patience{run: 2 * time.Second})
	var wait sync.WaitGroup
	answers := make(chan string, 80)
	for range 40 {
		wait.Go(func() {
			for i := range 2 {
				method, body := http.MethodPost, "{}"
				if i%2 == 0 {
					method, body = http.MethodDelete, ""
				}
				status, text, _ := h.do(0, method, wire.PathStop, body)
				switch {
				case status == http.StatusOK:
					answers <- "done"
				case status == http.StatusServiceUnavailable && strings.Contains(text, "this task has asked too often: it may 5 times a second"):
					answers <- "refused"
				default:
					answers <- text
				}
			}
		})
	}
	wait.Wait()
	close(answers)
	count := map[string]int{}
	for a := range answers {
		count[a]++
	}
	assert.Positive(t, count["done"], count)
	assert.Positive(t, count["refused"], count)
	// Another task, of this run or another, is not affected.
	status, text, _ := h.do(1, http.MethodPost, wire.PathStop, "{}")
	assert.Equal(t, http.StatusOK, status, text)
}
