package call

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestWhatWasCancelled(t *testing.T) {
	for want, n := range map[string][2]int{
		"cancelled 3 queued calls; 2 running calls were asked to end": {3, 2},
		"cancelled 1 queued call; 1 running call was asked to end":    {1, 1},
		"cancelled 2 queued calls":                                    {2, 0},
		"cancelled 0 queued calls; 1 running call was asked to end":   {0, 1},
		"nothing to cancel: these calls have ended":                   {0, 0},
	} {
		assert.Equal(t, want, cancelledLine(n[0], n[1]))
	}
}

// An error names the flag that gave the value.
func TestRefusalsNameTheFlag(t *testing.T) {
	for field, want := range map[string]string{
		"function":        "FUNCTION: no",
		"args":            "ARG: no",
		"kwargs":          "--kwargs: no",
		"options.key":     "--key: no",
		"options.task":    "--task: no",
		"options.timeout": "--call-timeout: no",
		"resources":       "resources: no",
	} {
		refused := &closure.RefusedError{Reason: &spec.InvalidRequestError{Problems: []spec.Problem{{Path: field, Message: "no"}}}}
		err := closureError(context.Background(), context.Background(), 0, refused)
		var usage *cli.UsageError
		assert.True(t, errors.As(err, &usage))
		assert.EqualError(t, err, want)
	}
}
