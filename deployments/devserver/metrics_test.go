package devserver

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

// The metrics are there under Temporal's names, and neither queues nor IDs are labels: there is one
// of each for every run.
func TestMetricsAreServed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	p := start(t, "--metrics="+address)
	defer startWorker(t, p.client(), func(r worker.Registry) { r.RegisterWorkflow(awaitSignal) })()
	run := startWorkflow(t, p.client(), awaitSignal)
	require.NoError(t, p.client().SignalWorkflow(t.Context(), run.GetID(), "", "go", "text"))
	require.NoError(t, awaitResult(t, run, new(string)))

	// They are gathered once a second.
	var text string
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		r, err := http.Get("http://" + address + "/metrics")
		require.NoError(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		text = string(body)
		assert.Regexp(t, `(?m)^service_requests\{.*operation="StartWorkflowExecution".* 1$`, text)
		assert.Regexp(t, `(?m)^persistence_latency_bucket\{.*operation="CreateWorkflowExecution"`, text)
	}, patience, 100*time.Millisecond)
	assert.NotContains(t, text, run.GetID())
	assert.NotContains(t, text, testQueue)
}
