package workers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// fakeServer is a Temporal server that knows who polls, and remembers what it is told.
type fakeServer struct {
	client.Client
	t *testing.T

	mu sync.Mutex
	// polled is when the queue of a host was polled, by the identity of who did.
	polled map[string]time.Time
	// probe answers the activity on a queue; nil: nobody polls any.
	probe  func(queue string) error
	probed []string
	// told are the requests, and fail the errors that they have first.
	told []proto.Message
	fail []error
}

func (f *fakeServer) side() *side {
	return &side{Options: Options{Host: "host-a", Queue: "q"}, log: zap.NewNop(), supervisor: &supervisor.Client{}, client: f}
}

func (f *fakeServer) WorkflowService() workflowservice.WorkflowServiceClient {
	return &fakeService{fakeServer: f}
}

func (f *fakeServer) DescribeTaskQueue(_ context.Context, queue string, kind enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.polled == nil {
		return nil, errors.New("the server does not tell")
	}
	if queue != "q/host/host-a" || kind != enumspb.TASK_QUEUE_TYPE_ACTIVITY {
		f.t.Errorf("it was asked for the %s queue %s", kind, queue)
	}
	d := &workflowservice.DescribeTaskQueueResponse{}
	for who, at := range f.polled {
		d.Pollers = append(d.Pollers, &taskqueuepb.PollerInfo{Identity: who, LastAccessTime: timestamppb.New(at)})
	}
	return d, nil
}

func (f *fakeServer) ExecuteActivity(_ context.Context, o client.StartActivityOptions, _ any, _ ...any) (client.ActivityHandle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probed = append(f.probed, o.TaskQueue)
	if f.probe == nil {
		return nil, errors.New("there are no activities of their own")
	}
	return probed{err: f.probe(o.TaskQueue)}, nil
}

// probed is an activity that has ended.
type probed struct {
	client.ActivityHandle
	err error
}

func (p probed) Get(context.Context, any) error { return p.err }

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
