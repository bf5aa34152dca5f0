package command

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
)

func TestWhatWasCancelled(t *testing.T) {
	for want, n := range map[string][2]int{
		"cancelled 3 queued closures; 2 that execute were told to end":     {3, 2},
		"cancelled 1 queued closure; 1 that executes was told to end":      {1, 1},
		"cancelled 2 queued closures":                                      {2, 0},
		"cancelled 0 queued closures; 1 that executes was told to end":     {0, 1},
		"nothing to cancel: none of these closures is queued or executing": {0, 0},
	} {
		assert.Equal(t, want, cancelledLine(n[0], n[1]))
	}
}

// What is refused is named as it was given: by the flag.
func TestRefusalsNameTheFlag(t *testing.T) {
	for message, want := range map[string]string{
		"f cannot be scheduled: options.retries: must not be negative, is -1":  "f cannot be scheduled: --retries: must not be negative, is -1",
		"f cannot be scheduled: options.priority: must be from -1 to 1, is 5":  "f cannot be scheduled: --priority: must be from -1 to 1, is 5",
		"f cannot be scheduled: options.timeout: must not be negative, is -1s": "f cannot be scheduled: --call-timeout: must not be negative, is -1s",
		"closures[0].function: no task has registered a function":              "FUNCTION: no task has registered a function",
	} {
		err := (&app{}).closureError(context.Background(), context.Background(), 0, &closurequeue.RefusedError{Message: message})
		var usage *usageError
		assert.True(t, errors.As(err, &usage))
		assert.EqualError(t, err, want)
	}
}
