package e2e

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// shifted forwards requests to a server, and shifts its clock.
type shifted struct {
	workflowservice.WorkflowServiceServer
	by time.Duration
}

func (s shifted) DescribeTaskQueue(ctx context.Context, r *workflowservice.DescribeTaskQueueRequest) (*workflowservice.DescribeTaskQueueResponse, error) {
	answer, err := s.WorkflowServiceServer.DescribeTaskQueue(ctx, r)
	for _, p := range answer.GetPollers() {
		p.LastAccessTime = timestamppb.New(p.GetLastAccessTime().AsTime().Add(s.by))
	}
	return answer, err
}

// The clock of a real server is compared with the clock of this machine.
func TestDoctorComparesTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	_, said, _ := s.CLI(t, "doctor")
	assert.Regexp(t, `(?m)^ok +server +the clocks of the server and of this machine agree, to within [0-9.]+m?s$`, said)

	p := must.Get(proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: s.Client().WorkflowService()}))(t)
	for by, want := range map[time.Duration]string{-time.Minute: "-1m", 2 * time.Hour: "2h0m"} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		server := grpc.NewServer()
		workflowservice.RegisterWorkflowServiceServer(server, shifted{p, by})
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		_, said, _ := s.CLI(t, "doctor", "--address", l.Addr().String())
		assert.Regexp(t, `(?m)^warning +server +the clock of the server differs from that of this machine by about `+want, said)
		assert.Regexp(t, `(?m)^ +-> timedatectl set-ntp true, here and where the server is$`, said)
	}
}
