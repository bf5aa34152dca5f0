package cli

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/starter/rundir"
)

// The directory of a run is all that is known of it here. It stays until an answer of the server
// shows that the run is over; a request that was cut short shows nothing.
func TestAnAbandonedRunIsKeptUntilItIsKnownToBeOver(t *testing.T) {
	unknown := serviceerror.NewNotFound("no such workflow")
	for name, c := range map[string]struct {
		answer    error
		execution string
		since     time.Duration
		kept      bool
	}{
		"the server does not know it":     {unknown, "1", 0, false},
		"the server does not know it yet": {unknown, "", time.Second, true},
		"the server was never asked":      {unknown, "", time.Hour, false},
		"there was no time":               {context.Canceled, "1", 0, true},
		"the server is away":              {serviceerror.NewUnavailable("away"), "1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			d, err := rundir.Create(parent)
			require.NoError(t, err)
			require.NoError(t, d.Save(rundir.Record{Embedded: true, RunID: "a", ExecutionID: c.execution, Queue: "q", Started: time.Now().Add(-c.since)}))
			path := d.Path
			d.Close() // its owner is gone
			found, err := rundir.Abandoned(parent)
			require.NoError(t, err)
			require.Len(t, found, 1)
			theirs := &mocks.Client{}
			theirs.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(nil, c.answer)
			endOne(t.Context(), (&App{}), found[0], theirs, Server{Embedded: true})
			_, err = os.Stat(path)
			assert.Equal(t, c.kept, err == nil)
		})
	}
}
