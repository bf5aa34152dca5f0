package spec_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// wire lists the types that cross the wire, except the inputs of updates: inputs, results and
// details of workflows, queries, updates, activities and errors.
var wire = []reflect.Type{
	reflect.TypeFor[spec.RunSpec](),
	reflect.TypeFor[spec.RunResult](),
	reflect.TypeFor[spec.Status](),
	reflect.TypeFor[spec.Heartbeat](), reflect.TypeFor[spec.Fetching](),
	reflect.TypeFor[spec.Task](),
	reflect.TypeFor[spec.Notice](),
	reflect.TypeFor[spec.RequestAnswer](),
	reflect.TypeFor[spec.TaskProblem](),
	reflect.TypeFor[spec.Stopping](),
	reflect.TypeFor[spec.BarrierInput](),
	reflect.TypeFor[spec.BarrierMessage](),
	reflect.TypeFor[spec.BarrierResult](),
	reflect.TypeFor[spec.BarrierStatus](),
	reflect.TypeFor[spec.BarrierCheckInput](),
	reflect.TypeFor[spec.BarrierCheckOutput](),
	reflect.TypeFor[spec.InvalidSpecError](),
	reflect.TypeFor[spec.InvalidRequestError](),
}

// TestContract compares every name on the wire with the golden file. Changing or removing a name
// breaks open runs, programs and other versions; adding one is fine if old readers may ignore it.
func TestContract(t *testing.T) {
	queues := fmt.Sprintf("\n## Queues of the queue q\n\n%s\n%s\n%s\n", spec.HostsQueue("q"), spec.HostQueue("q", "host"), spec.InstanceQueue("q", "host", "instance"))
	text := queues + "\n## Updates of a run\n\n"
	types := wire
	for _, u := range lifecycle.Updates {
		text += fmt.Sprintf("%-32s %T\n", u.Name, u.Input)
		types = append(types, reflect.TypeOf(u.Input))
	}
	spec.Golden(t, "testdata/contract.golden", scripts.Contract(t, text, types))
}

func TestQueues(t *testing.T) {
	require.Equal(t, "clusterrun/hosts", spec.HostsQueue(spec.TaskQueue))
	require.Equal(t, "clusterrun/host/a", spec.HostQueue(spec.TaskQueue, "a"))
	require.Equal(t, "clusterrun/host/a/i", spec.InstanceQueue(spec.TaskQueue, "a", "i"))
	local := spec.LocalQueue("x")
	require.True(t, spec.IsPrivateQueue(local), "it asks no fleet for hosts")
	require.Equal(t, []string{local, local, local}, []string{spec.HostsQueue(local), spec.HostQueue(local, "a"), spec.InstanceQueue(local, "a", "i")})
	require.False(t, spec.IsLocalQueue(spec.PrivateQueue("x")))
}

func TestATaskIsFoundInTheIDOfItsActivity(t *testing.T) {
	task, generation, ok := spec.TaskOfActivity(spec.TaskActivityID("data-worker-3", 12, 4))
	assert.Equal(t, "data-worker-3", task)
	assert.Equal(t, 12, generation)
	assert.True(t, ok)
	for _, other := range []string{"", "17", "worker-0", "worker-0/x.1"} {
		_, _, ok := spec.TaskOfActivity(other)
		assert.False(t, ok, other)
	}
}

func TestMostHosts(t *testing.T) {
	var addresses []string
	for i := range spec.MaxHosts {
		addresses = append(addresses, fmt.Sprint("h", i))
	}
	validate := func() error {
		return (&spec.RunSpec{Command: []string{"true"}, Tasks: []spec.TaskGroup{{Type: "worker", Addresses: addresses}}}).WithDefaults().Validate()
	}
	require.NoError(t, validate())
	addresses = append(addresses, "another")
	require.EqualError(t, validate(), "invalid run spec: tasks: addresses name 1901 hosts, but a run has at most 1900; use fewer hosts")
}
