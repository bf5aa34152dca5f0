package drill

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheSameSeedMakesTheSameSchedule(t *testing.T) {
	limits := Limits{Namespaces: true, Disks: true, StopAfter: 10 * time.Second}
	a, b, other := NewSchedule(7, 33, limits), NewSchedule(7, 33, limits), NewSchedule(8, 33, limits)
	assert.Equal(t, a, b)
	assert.NotEqual(t, a, other)
	n := 0
	for _, round := range a {
		n += len(round)
	}
	assert.Equal(t, 33, n)
}

func TestAScheduleHasEveryKindOfFault(t *testing.T) {
	seen := map[Kind]bool{}
	for _, round := range NewSchedule(1, 1000, Limits{Namespaces: true, Disks: true, StopAfter: 10 * time.Second}) {
		for _, f := range round {
			seen[f.Kind] = true
			assert.False(t, f.Kind == LoseHost && len(round) > 1, "a lost host is alone in its round")
		}
	}
	assert.Len(t, seen, 17)
	for _, round := range NewSchedule(1, 1000, Limits{StopAfter: 10 * time.Second}) {
		for _, f := range round {
			assert.NotContains(t, []Kind{Unplug, FillState, FillLogs}, f.Kind, "what the machine does not have")
		}
	}
}
