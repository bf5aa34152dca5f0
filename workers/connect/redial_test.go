package connect

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/clusterrun/clusterrun/tests/must"
)

// polled is a server that answers polls.
type polled struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

func (polled) PollActivityTaskQueue(context.Context, *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	return &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("a task")}, nil
}

// A poll that starts while the server is away gets its task as soon as the server is back. Other
// calls fail until then, so that hosts notice the outage.
func TestPollsWaitForTheServer(t *testing.T) {
	socket := t.TempDir() + "/server"
	o := must.Get(Options{Socket: socket}.Client())(t)
	conn := must.Get(grpc.NewClient("unix://"+socket, append(o.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	server := workflowservice.NewWorkflowServiceClient(conn)

	polls := make(chan error, 1)
	var got *workflowservice.PollActivityTaskQueueResponse
	go func() {
		var err error
		got, err = server.PollActivityTaskQueue(t.Context(), &workflowservice.PollActivityTaskQueueRequest{})
		polls <- err
	}()
	_, err := server.RecordActivityTaskHeartbeat(t.Context(), &workflowservice.RecordActivityTaskHeartbeatRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))

	back := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(back, polled{})
	listener := must.Get(net.Listen("unix", socket))(t)
	go func() { _ = back.Serve(listener) }()
	t.Cleanup(back.Stop)
	require.NoError(t, <-polls)
	require.Equal(t, []byte("a task"), got.GetTaskToken())
}
