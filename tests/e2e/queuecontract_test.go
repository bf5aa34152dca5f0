package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/queues/contract"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A queue on a server is as the tests of its clients take it to be.
func TestAQueueKeepsItsContract(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=60"))
	run := f.serve(2)
	f.awaitServing(f.coordinator(run), 2)
	contract.Check(t, contract.Queue{
		Server: f.client, Run: spec.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()},
		Open: func() *closurequeue.Queue {
			q, err := starter.Get(f.client, run.GetID(), "").Closures(bounded(t))
			require.NoError(t, err)
			return q
		},
		Release: func(name string) { touch(t, f, name) },
		ContinueAsNew: func(q *closurequeue.Queue) {
			before, err := q.Status(bounded(t))
			require.NoError(t, err)
			for now := before; len(now.Executions) == len(before.Executions); {
				_, err := q.Schedule(bounded(t), closure.Closure{Function: "square", Args: []byte("[3]")})
				require.NoError(t, err)
				require.NoError(t, q.Flush(bounded(t)))
				now, err = q.Status(bounded(t))
				require.NoError(t, err)
			}
		},
		End: func() { f.end(run) },
	})
}
