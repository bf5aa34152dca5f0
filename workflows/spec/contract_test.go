package spec

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/contract"
)

// wire lists the types that cross the wire: inputs, results and details of
// workflows, queries, updates, activities and errors.
var wire = []reflect.Type{
	reflect.TypeFor[RunSpec](),
	reflect.TypeFor[RunResult](),
	reflect.TypeFor[Status](),
	reflect.TypeFor[Heartbeat](), reflect.TypeFor[Fetching](),
	reflect.TypeFor[Task](),
	reflect.TypeFor[TaskRequest](),
	reflect.TypeFor[TerminateAllRequest](),
	reflect.TypeFor[SignalRequest](),
	reflect.TypeFor[StartTaskRequest](),
	reflect.TypeFor[StopRequest](),
	reflect.TypeFor[RestartedRequest](),
	reflect.TypeFor[Notice](),
	reflect.TypeFor[NoticeRequest](),
	reflect.TypeFor[StacksRequest](),
	reflect.TypeFor[ExecRequest](),
	reflect.TypeFor[SilentRequest](),
	reflect.TypeFor[RequestAnswer](),
	reflect.TypeFor[TaskProblem](),
	reflect.TypeFor[TogetherRequest](),
	reflect.TypeFor[ClearStopRequest](),
	reflect.TypeFor[Stopping](),
	reflect.TypeFor[BarrierInput](),
	reflect.TypeFor[BarrierMessage](),
	reflect.TypeFor[BarrierResult](),
	reflect.TypeFor[BarrierStatus](),
	reflect.TypeFor[BarrierCheckInput](),
	reflect.TypeFor[BarrierCheckOutput](),
	reflect.TypeFor[InvalidSpecError](),
	reflect.TypeFor[InvalidRequestError](),
}

// TestContract holds every name on the wire against the golden file. A changed or removed name
// breaks open runs, programs and other versions; one that is added is fine, if old readers may
// ignore it.
func TestContract(t *testing.T) {
	queues := fmt.Sprintf("\n## Queues of the queue q\n\n%s\n%s\n%s\n", HostsQueue("q"), HostQueue("q", "host"), InstanceQueue("q", "host", "instance"))
	golden(t, "testdata/contract.golden", contract.Text(t, queues, wire))
}

func TestQueues(t *testing.T) {
	require.Equal(t, "clusterrun/hosts", HostsQueue(TaskQueue))
	require.Equal(t, "clusterrun/host/a", HostQueue(TaskQueue, "a"))
	require.Equal(t, "clusterrun/host/a/i", InstanceQueue(TaskQueue, "a", "i"))
	local := LocalQueue("x")
	require.True(t, IsPrivateQueue(local), "it asks no fleet for hosts")
	require.Equal(t, []string{local, local, local}, []string{HostsQueue(local), HostQueue(local, "a"), InstanceQueue(local, "a", "i")})
	require.False(t, IsLocalQueue(PrivateQueue("x")))
}
