package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A clock that is put back does not make the next message of a broker an old one.
func TestMessagesToAQueueAreNumberedUpwards(t *testing.T) {
	now := time.UnixMicro(7_000_000)
	first := nextSeq(0, now)
	assert.Equal(t, int64(7_000_000), first, "a queue of an earlier version expects times")
	second := nextSeq(first, now.Add(-5*time.Second))
	assert.Greater(t, second, first)
	assert.Greater(t, nextSeq(second, now), second)
	assert.Equal(t, int64(8_000_000), nextSeq(second, now.Add(time.Second)))
}
