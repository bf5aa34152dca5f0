package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ClusterRunInGroups is ClusterRun with groups that carry out all launches.
func ClusterRunInGroups(ctx workflow.Context, input, resumption converter.RawValue) (*spec.RunResult, error) {
	return runCluster(ctx, input, resumption, 0)
}
