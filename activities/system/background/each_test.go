package background

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEach(t *testing.T) {
	items := []string{"a", "b", "c", "d", "e", "f"}
	done := make([]string, len(items))
	var now atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	Each(2, items, func(i int, item string) {
		assert.LessOrEqual(t, now.Add(1), int32(2))
		defer now.Add(-1)
		if i < 2 { // the first two wait for each other
			both.Done()
			both.Wait()
		}
		done[i] = item
	})
	assert.Equal(t, items, done)
}
