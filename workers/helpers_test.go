package workers

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// fakeServer is a Temporal server with a fleet, which records its requests.
type fakeServer struct {
	client.Client
	t *testing.T

	mu sync.Mutex
	// hosts are the hosts of the fleet. If it is nil, there is no fleet.
	hosts []fleet.HostStatus
	// told are the requests, and fail the errors of the first ones.
	told []proto.Message
	fail []error
}

func (f *fakeServer) side() *side {
	return &side{Options: Options{Host: "host-a", Queue: "q"}, log: zap.NewNop(), supervisor: &supervisor.Client{}, client: f}
}

func (f *fakeServer) WorkflowService() workflowservice.WorkflowServiceClient {
	return &fakeService{fakeServer: f}
}

func (f *fakeServer) QueryWorkflowWithOptions(_ context.Context, q *client.QueryWorkflowWithOptionsRequest) (*client.QueryWorkflowWithOptionsResponse, error) {
	if f.hosts == nil {
		return nil, errors.New("the fleet does not answer")
	}
	if q.WorkflowID != "q/fleet" || q.QueryType != spec.QueryHosts {
		f.t.Errorf("it was asked for %s of %s", q.QueryType, q.WorkflowID)
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(f.hosts)
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: client.NewValue(p)}, err
}

// fakeService is its service.
type fakeService struct {
	workflowservice.WorkflowServiceClient
	fakeServer *fakeServer
}

func (f *fakeService) RespondActivityTaskFailed(_ context.Context, r *workflowservice.RespondActivityTaskFailedRequest, _ ...grpc.CallOption) (*workflowservice.RespondActivityTaskFailedResponse, error) {
	return nil, f.fakeServer.tell(r)
}

func (f *fakeService) RespondWorkflowTaskFailed(_ context.Context, r *workflowservice.RespondWorkflowTaskFailedRequest, _ ...grpc.CallOption) (*workflowservice.RespondWorkflowTaskFailedResponse, error) {
	return nil, f.fakeServer.tell(r)
}

func (f *fakeService) ShutdownWorker(_ context.Context, r *workflowservice.ShutdownWorkerRequest, _ ...grpc.CallOption) (*workflowservice.ShutdownWorkerResponse, error) {
	return nil, f.fakeServer.tell(r)
}

func (f *fakeServer) tell(r proto.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, r)
	if len(f.fail) == 0 {
		return nil
	}
	err := f.fail[0]
	f.fail = f.fail[1:]
	return err
}
