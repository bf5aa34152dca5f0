package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BarrierHost is the part of a host worker that barriers need, in the process of
// the test: it has a connection of its own.
type BarrierHost struct {
	*barriers.Barriers
	client client.Client
	worker worker.Worker
}

// BarrierWorker executes the rounds of barriers on a queue.
func (s *Server) BarrierWorker(t testing.TB, queue string) {
	t.Helper()
	w := worker.New(s.Client(), queue, worker.Options{LocalActivityWorkerOnly: true, DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(workflows.Barrier, workflow.RegisterOptions{Name: spec.BarrierWorkflowType})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// StartBarrierHost starts one on its state directory.
func (s *Server) StartBarrierHost(t testing.TB, queue, name, state string) *BarrierHost {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.Address, Logger: sdklog.NewStructuredLogger(discard())})
	require.NoError(t, err)
	srv := &server.Server{}
	srv.Connect(c)
	rounds := server.NewBarriers(srv, queue)
	own := spec.InstanceQueue(queue, name, "test")
	b, err := barriers.New(barriers.Config{Server: rounds, Host: name, Queue: own, StateDir: state, Log: zap.NewNop()})
	require.NoError(t, err)
	w := worker.New(c, own, worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(rounds.BarrierCheck, activity.RegisterOptions{Name: spec.ActivityBarrierCheck})
	require.NoError(t, w.Start())
	h := &BarrierHost{Barriers: b, client: c, worker: w}
	t.Cleanup(h.Close)
	return h
}

// Close stops it without a notice to any other host, as if the host worker were stopped or
// killed. It may be called again.
func (h *BarrierHost) Close() {
	if h.worker == nil {
		return
	}
	h.Barriers.Close()
	h.worker.Stop()
	h.client.Close()
	h.worker = nil
}
