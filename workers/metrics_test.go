package workers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A thousand host workers ask the same server, which does not answer all of them. The metric
// has no value before the first answer.
func TestOpenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked []time.Duration
		var said []int64
		began := time.Now()
		lookForOpen(ctx, func() (int64, error) {
			asked = append(asked, time.Since(began))
			switch len(asked) {
			case 1, 3:
				return 0, errors.New("too many requests")
			case 10:
				cancel()
			}
			return int64(len(asked)), nil
		}, func(n int64) { said = append(said, n) })
		assert.Equal(t, []int64{2, 4, 5, 6, 7, 8, 9, 10}, said)
		assert.Zero(t, asked[0], "the first look is at once")
		waits := map[time.Duration]bool{}
		for i := range asked[1:] {
			wait := asked[i+1] - asked[i]
			waits[wait] = true
			assert.GreaterOrEqual(t, wait, 45*time.Second)
			assert.Less(t, wait, 75*time.Second)
		}
		assert.Greater(t, len(waits), 1, "they spread")
	})
}
