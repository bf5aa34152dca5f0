package closure

import (
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/contract"
)

var update = flag.Bool("update", false, "write the golden file instead of comparing with it")

// TestContract compares every name on the wire with the golden file, like the test of package
// spec.
func TestContract(t *testing.T) {
	const path = "testdata/contract.golden"
	got := contract.Text(t, "", []reflect.Type{
		reflect.TypeFor[QueueInput](),
		reflect.TypeFor[ScheduleRequest](),
		reflect.TypeFor[ScheduleAnswer](),
		reflect.TypeFor[WaitRequest](),
		reflect.TypeFor[WaitAnswer](),
		reflect.TypeFor[WithdrawAnswer](),
		reflect.TypeFor[ResourceRequest](),
		reflect.TypeFor[ResourceAnswer](),
		reflect.TypeFor[ReleaseRequest](),
		reflect.TypeFor[ReleaseAnswer](),
		reflect.TypeFor[CancelRequest](),
		reflect.TypeFor[CancelAnswer](),
		reflect.TypeFor[PauseRequest](),
		reflect.TypeFor[ServingMessage](),
		reflect.TypeFor[Lease](),
		reflect.TypeFor[LeaseResult](),
		reflect.TypeFor[LeaseBeat](),
		reflect.TypeFor[CancelLease](),
		reflect.TypeFor[ReleasedResources](),
		reflect.TypeFor[EndInput](),
		reflect.TypeFor[CheckInput](),
		reflect.TypeFor[CheckOutput](),
		reflect.TypeFor[DecidedOutcomes](),
		reflect.TypeFor[QueueStatus](),
		reflect.TypeFor[QueueResult](),
	})
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), got, "if this change is meant, run the test with -update")
}
