package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
)

// Values that the server would refuse or round are refused before it is asked.
func TestScheduleCheck(t *testing.T) {
	for _, good := range []Schedule{
		{Cron: []string{"0 3 * * *"}, TimeZone: "Europe/Berlin"},
		{Every: time.Second},
		{Every: time.Hour, CatchUp: 10 * time.Second},
	} {
		require.NoError(t, good.Check())
	}
	for want, bad := range map[string]Schedule{
		"no start time":                                                        {CatchUp: time.Hour},
		"--every -1s: give 1s or more":                                         {Every: -time.Second},
		"--every 1ms: give 1s or more":                                         {Cron: []string{"@daily"}, Every: time.Millisecond},
		"--every 1.5s: give whole seconds, such as 2s":                         {Every: 1500 * time.Millisecond},
		"--catchup-window 9s: give 10s or more":                                {Every: time.Hour, CatchUp: 9 * time.Second},
		"--catchup-window 1m0.25s: give whole seconds, such as 1m0s":           {Every: time.Hour, CatchUp: time.Minute + time.Second/4},
		"--timezone needs --cron; --every counts from the epoch in every zone": {Every: time.Hour, TimeZone: "UTC"},
	} {
		assert.ErrorContains(t, bad.Check(), want)
	}
}

func TestAFleetThatDoesNotAnswer(t *testing.T) {
	f := GetFleet(nil, "gpus")
	for _, err := range []error{
		serviceerror.NewDeadlineExceeded("query timed out before a worker could process it"),
		serviceerror.NewCanceled("stream terminated by RST_STREAM with error code: CANCEL"),
		context.DeadlineExceeded,
	} {
		said := f.requestError(err)
		assert.ErrorContains(t, said, "no host of queue \"gpus\" answers; is a `clusterrun worker` running?")
		assert.ErrorIs(t, said, err)
	}
	assert.EqualError(t, f.requestError(errors.New("no route")), "queue gpus: no route")
}
