package command

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/starter/rundir"
)

// The directory of a run is all that is known of it here. It goes only when the server has said
// that the run is over: whoever is asked in too little time does not know.
func TestAnAbandonedRunIsKeptUntilItIsKnownToBeOver(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		kept   bool
	}{
		"the server does not know it": {serviceerror.NewNotFound("no such workflow"), false},
		"there was no time":           {context.Canceled, true},
		"the server is away":          {serviceerror.NewUnavailable("away"), true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			d, err := rundir.Create(parent)
			require.NoError(t, err)
			require.NoError(t, d.Save(rundir.Record{Embedded: true, RunID: "a", ExecutionID: "1", Queue: "q"}))
			path := d.Path
			d.Close() // its owner is gone
			found, err := rundir.Abandoned(parent)
			require.NoError(t, err)
			require.Len(t, found, 1)
			theirs := &mocks.Client{}
			theirs.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, mock.Anything).Return(nil, c.answer)
			(&app{}).endOne(t.Context(), found[0], theirs, server{Embedded: true})
			_, err = os.Stat(path)
			assert.Equal(t, c.kept, err == nil)
		})
	}
}
