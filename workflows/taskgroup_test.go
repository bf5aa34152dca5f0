package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A run behaves the same with and without groups. The environment of the tests cannot terminate
// a group that has not begun; a test in tests/e2e continues a run with groups.
func TestInGroups(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"TimeoutWhileARunThatGoesOnIsPlaced":              TestTimeoutWhileARunThatGoesOnIsPlaced,
		"AGroupThatIsLongKeepsItsHosts":                   TestAGroupThatIsLongKeepsItsHosts,
		"ARunDoesNotGoOnInTheMiddleOfARequest":            TestARunDoesNotGoOnInTheMiddleOfARequest,
		"NothingIsPlacedBeforeTheLastGenerationIsSettled": TestNothingIsPlacedBeforeTheLastGenerationIsSettled,
		"StopTogether":                   TestStopTogether_CO01_CO08,
		"Stragglers":                     TestStragglers_CO06_SEED61,
		"ClearStop":                      TestClearStop_CO13,
		"StopTogetherIsRefused":          TestStopTogetherIsRefused,
		"TheNextGenerationKnowsOfAClear": TestTheNextGenerationKnowsOfAClear,
	} {
		t.Run(name, test)
	}
}

// clusterRun returns the workflow of runs for a test. Below TestInGroups it is a workflow whose
// tasks are carried by groups.
func clusterRun(t *testing.T) func(workflow.Context, converter.RawValue, converter.RawValue) (*spec.RunResult, error) {
	if strings.HasPrefix(t.Name(), "TestInGroups/") {
		return workflows.ClusterRunInGroups
	}
	return workflows.ClusterRun
}

// hearEnds delivers the signals of groups to the runs of a test.
func hearEnds(env *testsuite.TestWorkflowEnvironment) {
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, spec.SignalEnded, mock.Anything).
		Return(func(_, _, _, name string, ends any) error {
			env.SignalWorkflow(name, ends)
			return nil
		}).Maybe()
}
