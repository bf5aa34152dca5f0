package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A host of a large fleet sends fewer heartbeats, so that all together send no more.
func TestBeat(t *testing.T) {
	for hosts, want := range map[int]time.Duration{1: 5 * time.Second, 200: 5 * time.Second, 1000: 25 * time.Second} {
		assert.Equal(t, want, Beat(hosts), "%d hosts", hosts)
	}
}
